// What the page hears: one value per field, each with a number that grows, sent when it has come to rest.

class Reports {
  constructor() {
    this.sent = {};
    this.timers = {};
    this.last = 0;
    this.send = () => {};
  }

  // A value that goes out with the next report, so that the page hears both at once.
  note(field, value) {
    this.last = Math.max(this.last + 1, Date.now());
    this.sent = { ...this.sent, [field]: { number: this.last, value } };
  }

  // Later reports of a field replace the earlier one. `delay` 0 sends at once.
  report(field, value, delay) {
    this.last = Math.max(this.last + 1, Date.now());
    const report = { number: this.last, value };
    clearTimeout(this.timers[field]);
    const go = () => {
      this.sent = { ...this.sent, [field]: report };
      this.send(this.sent);
    };
    if (delay) this.timers[field] = setTimeout(go, delay);
    else go();
  }

  stop() {
    for (const timer of Object.values(this.timers)) clearTimeout(timer);
  }
}
