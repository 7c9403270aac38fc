// Reports to the page: one value per field with an increasing number, sent once the value has settled.

class Reports {
  constructor() {
    this.sent = {};
    this.timers = {};
    this.last = 0;
    this.send = () => {};
  }

  // Store a value for the next report, so that the page receives both at once.
  note(field, value) {
    this.last = Math.max(this.last + 1, Date.now());
    this.sent = { ...this.sent, [field]: { number: this.last, value } };
  }

  // Send a value after `delay` ms, or at once if 0. A later report of the same field replaces a pending one.
  report(field, value, delay) {
    clearTimeout(this.timers[field]);
    const go = () => {
      this.note(field, value);
      this.send(this.sent);
    };
    if (delay) this.timers[field] = setTimeout(go, delay);
    else go();
  }

  stop() {
    for (const timer of Object.values(this.timers)) clearTimeout(timer);
  }
}
