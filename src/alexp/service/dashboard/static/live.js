// Follows a study by server-sent events; a hidden page closes its connection.

/** Calls `heard(event)` for every event after the first `since`, and `state(word, detail)` when the connection changes. */
export class Follower {
  constructor(address, since, heard, state) {
    Object.assign(this, { address, since, heard, state, source: null });
    this.seen = () => (document.hidden ? this.pause() : this.start(true));
    document.addEventListener("visibilitychange", this.seen);
    this.start(false);
  }

  start(again) {
    if (this.source) return;
    this.source = new EventSource(`${this.address}?since=${this.since}`);
    this.source.onopen = () => this.state("live");
    this.source.onmessage = (message) => {
      this.since = Number(message.lastEventId) || this.since;
      this.heard(JSON.parse(message.data));
    };
    this.source.addEventListener("trouble", (message) => this.state("trouble", JSON.parse(message.data).detail));
    this.source.addEventListener("well", () => this.state("live"));
    this.source.addEventListener("gone", () => {
      this.stop();
      this.state("gone");
    });
    this.source.onerror = () => {
      const over = this.source?.readyState === EventSource.CLOSED; // the server sent an error: open a new one
      this.state("lost");
      if (over) {
        this.pause();
        this.retry = setTimeout(() => this.start(true), 5000);
      }
    };
    if (again) this.heard(null);
  }

  pause() {
    clearTimeout(this.retry);
    this.source?.close();
    this.source = null;
  }

  stop() {
    document.removeEventListener("visibilitychange", this.seen);
    this.pause();
  }
}
