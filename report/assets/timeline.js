"use strict";
// The timeline that people move in: mouse, keys, buttons, and details of the chosen instruction.

const CLOSEST = 8;          // cycles in view at the highest zoom
const COLOURS = ["load", "gemm", "alu", "store", "bus", "cpu", "back", "panel", "line", "text",
  "quiet", "strong"];
const HELP = "Mouse: click an instruction, drag to move, turn the wheel (after a click, or with Ctrl) "
  + "to zoom, double-click to zoom in on an instruction. Keys: + and −, ← and →, ↑ and ↓ for another "
  + "engine, N and P for the next and the previous instruction, Enter to zoom in on it, T to follow "
  + "its token back, Home for all.";

class Timeline {
  constructor(events, name) {
    this.events = events;
    this.start = 0;
    this.end = events.cycles;
    this.selected = null;
    this.focus = 1;                 // the track that keys choose from: GEMM
    this.linked = [this];           // timelines that show the same span
    this.canvas = element("canvas", { tabindex: 0, role: "application", "aria-label":
      `Timeline of ${name}: engines, bus and CPU. ${HELP}` });
    this.details = element("div", { class: "details", "aria-live": "polite" });
    this.listen();
    this.describe();
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault();
      this.zoom(2 ** (event.deltaY / 240), this.timeAt(event.offsetX));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.drag(event));
    canvas.addEventListener("dblclick", (event) => {
      this.select(this.instructionAt(event.offsetX, event.offsetY));
      this.zoomToSelected();
    });
    canvas.addEventListener("keydown", (event) => {
      if (!event.ctrlKey && !event.altKey && !event.metaKey && this.press(event.key)) {
        event.preventDefault();
      }
    });
  }

  drag(event) {
    const { start, end, canvas } = this;
    const perPixel = (end - start) / (canvas.clientWidth - GUTTER);
    let moved = 0;
    canvas.setPointerCapture(event.pointerId);
    const move = (next) => {
      moved = Math.max(moved, Math.abs(next.offsetX - event.offsetX));
      if (moved > 3) {
        const by = (event.offsetX - next.offsetX) * perPixel;
        this.show(start + by, end + by);
      }
    };
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("pointerup", () => {
      canvas.removeEventListener("pointermove", move);
      if (moved <= 3) this.select(this.instructionAt(event.offsetX, event.offsetY));
    }, { once: true });
  }

  press(key) {
    const span = this.end - this.start;
    const actions = {
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
      ArrowLeft: () => this.show(this.start - span / 5, this.end - span / 5),
      ArrowRight: () => this.show(this.start + span / 5, this.end + span / 5),
      ArrowUp: () => this.changeEngine(-1), ArrowDown: () => this.changeEngine(1),
      n: () => this.step(1), p: () => this.step(-1), Enter: () => this.zoomToSelected(),
      t: () => this.followToken(), Home: () => this.showAll(), 0: () => this.showAll(),
      Escape: () => this.select(null),
    };
    const action = actions[key] ?? actions[key.toLowerCase()];
    action?.();
    return action !== undefined;
  }

  timeAt(x) {
    return this.start + (x - GUTTER) / (this.canvas.clientWidth - GUTTER) * (this.end - this.start);
  }

  zoom(factor, around = this.middle()) {
    this.show(around + (this.start - around) * factor, around + (this.end - around) * factor);
  }

  // What zooming keeps in place: the chosen instruction, if it is in view.
  middle() {
    const span = this.spanOf(this.selected);
    const middle = span && (span[0] + span[1]) / 2;
    return span && middle > this.start && middle < this.end ? middle : (this.start + this.end) / 2;
  }

  show(start, end) {
    const longest = Math.max(...this.linked.map((each) => each.events.cycles));
    const span = Math.min(longest, Math.max(CLOSEST, end - start));
    const first = Math.max(0, Math.min(longest - span, (start + end - span) / 2));
    for (const each of this.linked) {
      each.start = first;
      each.end = first + span;
      each.redraw();
    }
  }

  showAll() {
    this.show(0, Infinity);
  }

  spanOf(instruction) {
    if (instruction === null || this.events.place[instruction] < 0) return null;
    const track = this.events.tracks[this.events.engineOf(instruction)];
    const place = this.events.place[instruction];
    return [track.start[place], track.end[place]];
  }

  zoomToSelected() {
    if (this.selected === null) this.step(1);
    const span = this.spanOf(this.selected);
    if (!span) return;
    const room = Math.max(CLOSEST, (span[1] - span[0]) * 1.5);
    this.show((span[0] + span[1] - room) / 2 - 1, (span[0] + span[1] + room) / 2 + 1);
  }

  // The instruction drawn at a place of the canvas; of several that overlap, the shortest.
  instructionAt(x, y) {
    const drawing = this.drawing();
    const number = this.events.tracks.findIndex((track, i) =>
      y >= drawing.top(i) && y < drawing.top(i) + trackHeight(track));
    if (number < 0 || number > 4) return null;
    if (number < 4) this.focus = number;
    const track = this.events.tracks[number];
    const [low, high] = [this.timeAt(x - 2), this.timeAt(x + 2)];
    let best = null;
    for (let i = track.from(low); i < track.length && track.start[i] <= high; i++) {
      if (track.end[i] < low) continue;
      const row = drawing.top(number) + track.lane[i] * trackHeight(track) / track.lanes;
      const fits = track.height || (y >= row && y < row + trackHeight(track) / track.lanes);
      const length = track.end[i] - track.start[i] + (fits ? 0 : this.events.cycles);
      if (best === null || length < best[0]) best = [length, track.item[i]];
    }
    return best && best[1];
  }

  changeEngine(by) {
    this.focus = (this.focus + by + 4) % 4;
    const track = this.events.tracks[this.focus];
    if (!track.length) {
      this.redraw();
      return;
    }
    const place = Math.min(track.length - 1, track.from(this.middle()));
    this.select(track.item[place]);
  }

  // Choose the next instruction of the engine, or the first in view.
  step(by) {
    const track = this.events.tracks[this.focus];
    if (!track.length) return;
    const isMine = this.selected !== null && this.events.engineOf(this.selected) === this.focus;
    const next = isMine ? this.events.place[this.selected] + by
      : track.from((this.start + this.end) / 2);
    this.select(track.item[Math.max(0, Math.min(track.length - 1, next))]);
  }

  followToken() {
    if (this.selected === null) return;
    const { from } = this.events.tokensOf(this.selected);
    const last = from.map((each) => [this.spanOf(each)?.[1] ?? 0, each]).sort((a, b) => b[0] - a[0]);
    if (last.length) this.select(last[0][1]);
  }

  select(instruction) {
    this.selected = instruction;
    if (instruction !== null) {
      this.focus = Math.max(0, this.events.engineOf(instruction));
      const span = this.spanOf(instruction);
      const room = this.end - this.start;
      if (span && (span[1] < this.start || span[0] > this.end)) {
        this.show((span[0] + span[1] - room) / 2, (span[0] + span[1] + room) / 2);
      }
    }
    this.describe();
    this.redraw();
  }

  describe() {
    this.details.replaceChildren(...(this.selected === null ? [HELP] : this.facts(this.selected)));
  }

  facts(instruction) {
    const { events } = this;
    const program = events.programOf(instruction);
    const position = instruction - program.first;
    const span = this.spanOf(instruction);
    const waits = page.isa.engines.map((name, i) =>
      [name, program.waits ? program.waits[i * program.count + position] : 0]);
    const { from, to } = events.tokensOf(instruction);
    const links = (title, found) => found.length ? element("div", {}, `${title}: `,
      ...found.flatMap((each) => [this.link(each), " "])) : null;
    const layer = events.layerOf(instruction);
    const moved = events.bytesOf(instruction);
    return [
      element("div", {}, element("code", {}, `${position}: ${events.text(instruction)}`)),
      element("div", {}, span ? `cycles ${count(span[0])} to ${count(span[1])}, `
        + `${count(span[1] - span[0])} in all` : "executed by FETCH",
        program.dispatched ? `; dispatched at ${count(program.base + program.dispatched[position])}`
          : "", moved ? `; moves ${count(moved)} bytes` : "",
        ...waits.filter(([, cycles]) => cycles > 0).map(([name, cycles]) =>
          `; waited ${count(cycles)} for ${name.toUpperCase()}`)),
      layer ? element("div", {}, `layer ${layer.names.join(", ")}`) : null,
      links("takes tokens of", from), links("gives tokens to", to),
    ].filter(Boolean);
  }

  link(instruction) {
    const program = this.events.programOf(instruction);
    const name = page.isa.engines[this.events.engineOf(instruction)].toUpperCase();
    return element("button", { onclick: () => this.select(instruction) },
      `${name} ${instruction - program.first}`);
  }

  drawing() {
    const { canvas } = this;
    const colours = Object.fromEntries(COLOURS.map((name) => [name, colour(name)]));
    const dark = document.documentElement.classList.contains("dark");
    colours.label = (name) => dark || ["bus", "cpu", "store"].includes(name) ? "#000" : "#fff";
    return new Drawing(canvas.getContext("2d"), { events: this.events, start: this.start,
      end: this.end, width: canvas.clientWidth, height: timelineHeight(this.events),
      selected: this.selected, focus: this.focus, colours });
  }

  redraw() {
    const { canvas } = this;
    if (!canvas.clientWidth) return;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, timelineHeight(this.events)];
    if (canvas.width !== Math.round(width * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height + 2}px`;        // with its border
      canvas.getContext("2d").scale(ratio, ratio);
    }
    this.drawing().draw();
  }

  element() {
    const tool = (text, title, action) =>
      element("button", { title, onclick: () => { action(); this.canvas.focus(); } }, text);
    return element("div", {}, element("div", { class: "tools" },
      tool("+", "zoom in", () => this.zoom(0.5)), tool("−", "zoom out", () => this.zoom(2)),
      tool("←", "earlier", () => this.press("ArrowLeft")),
      tool("→", "later", () => this.press("ArrowRight")),
      tool("all", "the whole run", () => this.showAll()),
      tool("one instruction", "zoom in on an instruction", () => this.zoomToSelected())),
      this.canvas, this.details);
  }
}
