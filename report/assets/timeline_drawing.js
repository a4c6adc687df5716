"use strict";
// Draws the part of a timeline that is in view. Where events are narrower than a pixel, a column of
// pixels shows which part of its time the track was busy, from sums: a redraw takes as long for a
// million events as for a thousand.

const GUTTER = 62;          // pixels left of time zero, for names
const AXIS = 20;            // pixels above the tracks
const LAYER_HEIGHT = 20;
const HEIGHTS = { bus: 38, cpu: 26 };
const ENGINE_HEIGHT = 44;
const GAP = 6;

function trackHeight(track) {
  return HEIGHTS[track.name] ?? ENGINE_HEIGHT;
}

function timelineHeight(events) {
  return AXIS + LAYER_HEIGHT + GAP
    + events.tracks.reduce((sum, each) => sum + trackHeight(each) + GAP, 0);
}

class Drawing {
  constructor(context, view) {
    this.context = context;
    Object.assign(this, view);              // events, start, end, width, height, selected, colours
    this.scale = (this.width - GUTTER) / (this.end - this.start);
  }

  x(time) {
    return GUTTER + (time - this.start) * this.scale;
  }

  top(number) {
    let top = AXIS + LAYER_HEIGHT + GAP;
    for (let i = 0; i < number; i++) top += trackHeight(this.events.tracks[i]) + GAP;
    return top;
  }

  draw() {
    const { context, colours } = this;
    context.fillStyle = colours.back;
    context.fillRect(0, 0, this.width, this.height);
    context.save();
    context.beginPath();
    context.rect(GUTTER, 0, this.width - GUTTER, this.height);
    context.clip();
    this.drawAxis();
    this.drawLayers();
    this.events.tracks.forEach((track, i) => this.drawTrack(track, this.top(i)));
    this.drawSelection();
    context.restore();
    this.drawNames();
  }

  drawAxis() {
    const { context, colours } = this;
    const step = niceStep((this.end - this.start) / Math.max(2, (this.width - GUTTER) / 110));
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (let time = Math.ceil(this.start / step) * step; time <= this.end; time += step) {
      const x = Math.round(this.x(time)) + 0.5;
      context.fillStyle = colours.line;
      context.fillRect(x, AXIS - 5, 1, this.height);
      context.fillStyle = colours.quiet;
      context.fillText(count(time), x + 3, AXIS / 2);
    }
  }

  drawLayers() {
    const { context, colours, events } = this;
    let drawnTo = -Infinity;
    for (const program of events.programs) {
      let time = program.base;
      program.layers.forEach((layer, number) => {
        const [left, right] = [this.x(time), this.x(time + layer.cycles)];
        time += layer.cycles;
        if (right < GUTTER || left > this.width || right < drawnTo + 0.5) return;
        drawnTo = right;
        context.fillStyle = number % 2 ? colours.panel : colours.line;
        context.fillRect(left, AXIS, right - left, LAYER_HEIGHT);
        const from = Math.max(left, GUTTER) + 4;
        this.label(layer.names.join(", "), from, AXIS + LAYER_HEIGHT / 2,
          Math.min(right, this.width) - from - 2, colours.text);
      });
    }
  }

  label(text, x, y, room, colour) {
    if (room < 24) return;
    const most = Math.floor(room / 6.9);            // pixels of a character
    this.context.fillStyle = colour;
    this.context.fillText(text.length > most ? `${text.slice(0, most - 1)}…` : text, x, y);
  }

  drawTrack(track, top) {
    const height = trackHeight(track);
    this.context.fillStyle = this.colours.panel;
    this.context.fillRect(GUTTER, top, this.width - GUTTER, height);
    const from = track.from(this.start);
    const to = track.after(this.end);
    if (to - from > this.width / 3) this.drawColumns(track, top, height);
    else this.drawEvents(track, from, to, top, height);
  }

  // The part of the time, or of the bus, that is used, a column for each pixel.
  drawColumns(track, top, height) {
    const { context } = this;
    const density = track.bytes ?? track.busy;
    const most = track.bytes ? this.events.peak : 1;
    context.fillStyle = this.colours[track.colour];
    context.beginPath();
    for (let x = GUTTER; x < this.width; x++) {
      const time = this.start + (x - GUTTER) / this.scale;
      const part = Math.min(1, density.between(time, time + 1 / this.scale) * this.scale / most);
      if (part > 0) context.rect(x, top + height * (1 - part), 1, height * part);
    }
    context.fill();
  }

  drawEvents(track, from, to, top, height) {
    const { context, colours } = this;
    const lane = height / track.lanes;
    const labelled = [];
    context.fillStyle = colours[track.colour];
    context.beginPath();
    for (let i = from; i < to; i++) {
      const left = this.x(track.start[i]);
      const right = this.x(track.end[i]);
      if (right < GUTTER || left > this.width) continue;
      const tall = track.height ? height * track.height[i] : lane - (track.lanes > 1 ? 1 : 0);
      const y = track.height ? top + height - tall : top + track.lane[i] * lane;
      context.rect(left, y, Math.max(0.7, right - left - (right - left > 3 ? 1 : 0)), tall);
      if (right - left > 30 && tall >= 9) labelled.push([i, left, right, y + tall / 2]);
    }
    context.fill();
    context.font = "11px ui-monospace, monospace";
    for (const [i, left, right, y] of labelled) {
      const x = Math.max(left, GUTTER) + 3;
      this.label(this.nameOf(track, i), x, y, Math.min(right, this.width) - x,
        colours.label(track.colour));
    }
  }

  nameOf(track, i) {
    if (track.name === "cpu") return `${this.events.cpu[track.item[i]].name}`;
    return this.events.text(track.item[i]);
  }

  drawSelection() {
    if (this.selected === null) return;
    const { context, colours } = this;
    const box = this.box(this.selected);
    if (!box) return;
    context.strokeStyle = colours.strong;
    context.lineWidth = 2;
    context.strokeRect(box.left, box.top, Math.max(2, box.right - box.left), box.height);
    const { from, to } = this.events.tokensOf(this.selected);
    for (const each of from) this.arrow(this.box(each), box);
    for (const each of to) this.arrow(box, this.box(each));
  }

  // Where an instruction is drawn.
  box(instruction) {
    const number = this.events.engineOf(instruction);
    const place = this.events.place[instruction];
    if (number < 0 || place < 0) return null;
    const track = this.events.tracks[number];
    const lane = trackHeight(track) / track.lanes;
    return { left: this.x(track.start[place]), right: this.x(track.end[place]),
      top: this.top(number) + track.lane[place] * lane, height: lane };
  }

  // From the end of the instruction that posts a token to the start of the one that takes it.
  arrow(from, to) {
    if (!from || !to) return;
    const { context, colours } = this;
    const [x0, y0] = [from.right, from.top + from.height / 2];
    const [x1, y1] = [to.left, to.top + to.height / 2];
    const bend = Math.max(14, Math.abs(x1 - x0) / 3);
    context.strokeStyle = context.fillStyle = colours.strong;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    context.stroke();
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 8, y1 - 4);
    context.lineTo(x1 - 8, y1 + 4);
    context.fill();
  }

  drawNames() {
    const { context, colours } = this;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.fillStyle = colours.quiet;
    context.fillText("layer", 6, AXIS + LAYER_HEIGHT / 2);
    this.events.tracks.forEach((track, i) => {
      const middle = this.top(i) + trackHeight(track) / 2;
      context.fillStyle = colours[track.colour];
      context.fillRect(6, middle - 6, 4, 12);
      context.fillStyle = this.focus === i ? colours.strong : colours.text;
      context.fillText(track.name.toUpperCase(), 14, middle);
    });
  }
}

// 1, 2 or 5 times a power of ten, at least as large.
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least);
}
