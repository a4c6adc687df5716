"use strict";
// Instruction words as assembly, from the table of the instruction set in the page's data. The text
// is what `microtron disasm` prints.

class Code {
  // `columns` has the bytes of all words: first all first bytes, then all second ones.
  constructor(columns, length, segments) {
    this.columns = columns;
    this.length = length;
    this.segments = segments;
  }

  byte(position, offset) {
    return this.columns[offset * this.length + position];
  }

  kind(position) {
    return page.isa.instructions[this.byte(position, 0)];
  }

  wait(position) {
    return this.byte(position, 1);
  }

  post(position) {
    return this.byte(position, 2);
  }

  number(position, offset, size, signed) {
    let value = 0;
    for (let i = size - 1; i >= 0; i--) value = value * 256 + this.byte(position, offset + i);
    const range = 256 ** size;
    return signed && value >= range / 2 ? value - range : value;
  }

  values(position, field) {
    return Array.from({ length: field.count }, (_, i) =>
      this.number(position, field.offset + i * field.bytes, field.bytes, field.signed));
  }

  text(position) {
    const kind = this.kind(position);
    let mnemonic = kind.mnemonic;
    const texts = new Map();
    for (const field of kind.fields) {
      const values = this.values(position, field);
      if (field.suffix) {
        mnemonic += `.${this.format(field, values)}`;
      } else if (this.isWritten(field, values)) {
        texts.set(field.name, `${field.name}=${this.format(field, values)}`);
      }
    }
    const [wait, post] = ["wait", "post"].map((name) => texts.get(name));
    texts.delete("wait");
    texts.delete("post");
    return [mnemonic, wait, ...texts.values(), post].filter(Boolean).join(" ");
  }

  isWritten(field, values) {
    if (field.default === null) return true;
    if (field.name === page.isa.segment && values[0] < this.segments.length) return true;
    return values.some((each, i) => each !== field.default[i]);
  }

  format(field, values) {
    return values.map((each) => this.formatOne(field, each)).join(",");
  }

  formatOne(field, value) {
    if (field.flags) {
      const set = field.names.filter(([bit]) => value & bit).map(([, name]) => name);
      return set.join("|") || page.isa.empty;
    }
    if (field.names.length) return field.names.find(([each]) => each === value)[1];
    if (field.name === page.isa.segment && value < this.segments.length) {
      return this.segments[value];
    }
    return field.hex ? `0x${value.toString(16)}` : `${value}`;
  }
}
