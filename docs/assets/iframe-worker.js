// Browsers start no workers from file://. There, the search runs in a hidden frame of the same page instead.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      frame.worker = this;
      frame.srcdoc =
        "<script>self.postMessage = data => frameElement.worker.dispatchEvent(new MessageEvent('message', { data }))</" +
        `script><script src="${url}"></` + "script>";
      this.frame = frame;
      this.ready = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
      document.body.append(frame);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
