"use strict";
// The events of a run: instructions by engine, transfers on the bus, the CPU's work. They are decoded
// once; after that a question about any span of time costs a binary search.

const BINS = 1 << 16;       // of the sums that stand for events when many share a pixel

// Sums over time of something that spans of time have: how much of it lies in any other span.
class Density {
  constructor(end, bins) {
    this.width = Math.max(end, 1) / bins;
    this.sums = new Float64Array(bins + 2);
    this.bins = bins;
  }

  // Add `amount`, spread evenly over a span.
  add(start, end, amount) {
    const from = Math.min(this.bins - 1, Math.floor(start / this.width));
    const to = Math.min(this.bins - 1, Math.floor(end / this.width));
    const each = end > start ? amount / (end - start) : 0;
    if (from === to) {
      this.sums[from + 1] += amount;
      return;
    }
    this.sums[from + 1] += each * ((from + 1) * this.width - start);
    for (let i = from + 1; i < to; i++) this.sums[i + 1] += each * this.width;
    this.sums[to + 1] += each * (end - to * this.width);
  }

  close() {
    for (let i = 1; i < this.sums.length; i++) this.sums[i] += this.sums[i - 1];
  }

  until(time) {
    const place = Math.max(0, Math.min(this.bins, time / this.width));
    const bin = Math.floor(place);
    return this.sums[bin] + (place - bin) * (this.sums[bin + 1] - this.sums[bin]);
  }

  between(start, end) {
    return this.until(end) - this.until(start);
  }
}

// The events of one track, in the order of their starts. They may overlap: each has a lane.
class Track {
  constructor(name, colourName, length, end, bins) {
    this.name = name;
    this.colour = colourName;
    this.start = new Float64Array(length);
    this.end = new Float64Array(length);
    this.lane = new Uint8Array(length);
    this.item = new Int32Array(length);         // what the event is: an instruction, a row of the CPU
    this.ended = new Float64Array(length);      // the latest end so far, to search in
    this.height = null;                         // of an event, as part of its lane
    this.length = 0;
    this.lanes = 1;
    this.free = [];
    this.busy = new Density(end, bins);
  }

  add(start, end, item) {
    const i = this.length++;
    const before = i ? this.ended[i - 1] : 0;
    let lane = this.free.findIndex((when) => when <= start);
    if (lane < 0) lane = Math.min(this.free.length, 7);
    this.free[lane] = end;
    this.lanes = Math.max(this.lanes, lane + 1);
    this.start[i] = start;
    this.end[i] = end;
    this.item[i] = item;
    this.lane[i] = lane;
    this.ended[i] = Math.max(before, end);
    if (end > Math.max(before, start)) {
      this.busy.add(Math.max(before, start), end, end - Math.max(before, start));
    }
  }

  // The first event that may reach beyond a time.
  from(time) {
    return search(this.length, (i) => this.ended[i] > time);
  }

  // The first event that starts after a time.
  after(time) {
    return search(this.length, (i) => this.start[i] > time);
  }
}

// The first number below `length` for which a condition holds, which then holds for all after it.
function search(length, holds) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

// All instructions of a run under running numbers, program after program.
class Events {
  static async of(data) {
    const programs = [];
    for (const each of data.programs) {
      const arrays = {};
      for (const name of ["code", "start", "length", "bytes", "dispatched", "waits"]) {
        if (each[name]) arrays[name] = await decodeArray(each[name]);
      }
      programs.push({ ...each, ...arrays, code: new Code(arrays.code, each.count, each.segments) });
    }
    return new Events(data, programs);
  }

  constructor(data, programs) {
    this.cycles = Math.max(1, data.cycles);
    this.mhz = data.mhz;
    this.peak = data.peak;
    this.cpu = data.cpu;
    this.programs = programs;
    let first = 0;
    for (const each of programs) {
      each.first = first;
      first += each.count;
    }
    this.length = first;
    this.place = new Int32Array(first).fill(-1);    // of an instruction in its track
    const bins = Math.min(BINS, Math.max(1, Math.ceil(this.cycles)));
    const counts = this.countByEngine();
    this.tracks = page.isa.engines.map((name, i) =>
      new Track(name, name, counts[i], this.cycles, bins));
    for (const each of programs) this.addInstructions(each);
    this.addBus(bins);
    const cpu = new Track("cpu", "cpu", this.cpu.length, this.cycles, bins);
    this.cpu.forEach((each, i) => cpu.add(each.start, each.end, i));
    this.tracks.push(cpu);
    this.tracks.forEach((each) => each.busy.close());
  }

  countByEngine() {
    const counts = page.isa.engines.map(() => 0);
    for (const program of this.programs) {
      for (let i = 0; i < program.count; i++) {
        const engine = program.code.kind(i).engine;
        if (engine >= 0 && program.start[i] >= 0) counts[engine]++;
      }
    }
    return counts;
  }

  addInstructions(program) {
    for (let i = 0; i < program.count; i++) {
      const engine = program.code.kind(i).engine;
      if (engine < 0 || program.start[i] < 0) continue;
      const start = program.base + program.start[i];
      this.place[program.first + i] = this.tracks[engine].length;
      this.tracks[engine].add(start, start + program.length[i], program.first + i);
    }
  }

  // An engine moves data in order: the bytes of a transfer are spread over the time in which it is
  // the oldest of its engine.
  addBus(bins) {
    const [loads, stores] = [this.tracks[0], this.tracks[3]];
    const length = loads.length + stores.length;
    const bus = new Track("bus", "bus", length, this.cycles, bins);
    bus.height = new Float64Array(length);
    bus.bytes = new Density(this.cycles, bins);
    const begin = (track, i) => Math.max(track.start[i], i ? track.ended[i - 1] : 0);
    for (let i = 0, j = 0; i + j < length;) {
      const isLoad = j >= stores.length
        || (i < loads.length && begin(loads, i) <= begin(stores, j));
      const [track, k] = isLoad ? [loads, i++] : [stores, j++];
      const start = begin(track, k);
      const moved = this.bytesOf(track.item[k]);
      if (!moved || track.end[k] <= start) continue;
      bus.height[bus.length] = Math.min(1, moved / (track.end[k] - start) / this.peak);
      bus.add(start, track.end[k], track.item[k]);
      bus.bytes.add(start, track.end[k], moved);
    }
    bus.bytes.close();
    this.tracks.push(bus);
  }

  programOf(instruction) {
    return this.programs[search(this.programs.length,
      (i) => this.programs[i].first > instruction) - 1];
  }

  bytesOf(instruction) {
    const program = this.programOf(instruction);
    return program.bytes[instruction - program.first];
  }

  engineOf(instruction) {
    const program = this.programOf(instruction);
    return program.code.kind(instruction - program.first).engine;
  }

  text(instruction) {
    const program = this.programOf(instruction);
    return program.code.text(instruction - program.first);
  }

  layerOf(instruction) {
    const program = this.programOf(instruction);
    const index = search(program.layers.length,
      (i) => program.layers[i].first > instruction - program.first) - 1;
    return index < 0 ? null : program.layers[index];
  }

  // Who posts the tokens that an instruction takes, and who takes those that it posts: of each pair
  // of engines, the k-th wait takes the k-th post.
  tokensOf(instruction) {
    const program = this.programOf(instruction);
    program.tokens ||= pairTokens(program);
    const position = instruction - program.first;
    const engine = program.code.kind(position).engine;
    const found = { from: [], to: [] };
    for (let other = 0; other < 4 && engine >= 0; other++) {
      const taken = program.tokens[other][engine];
      const given = program.tokens[engine][other];
      const k = indexOf(taken.takers, position);
      if (k >= 0 && k < taken.posters.length) found.from.push(program.first + taken.posters[k]);
      const n = indexOf(given.posters, position);
      if (n >= 0 && n < given.takers.length) found.to.push(program.first + given.takers[n]);
    }
    return found;
  }
}

function indexOf(sorted, value) {
  const i = search(sorted.length, (each) => sorted[each] >= value);
  return sorted[i] === value ? i : -1;
}

function pairTokens(program) {
  const pairs = Array.from({ length: 4 }, () =>
    Array.from({ length: 4 }, () => ({ posters: [], takers: [] })));
  for (let i = 0; i < program.count; i++) {
    const engine = program.code.kind(i).engine;
    for (let other = 0; other < 4 && engine >= 0; other++) {
      if (program.code.post(i) >> other & 1) pairs[engine][other].posters.push(i);
      if (program.code.wait(i) >> other & 1) pairs[other][engine].takers.push(i);
    }
  }
  return pairs;
}
