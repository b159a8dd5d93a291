/* Browsers refuse to start workers for pages opened from disk. The search then runs in a hidden frame instead. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = () => {}; // only other languages than English load more
      this.ready = new Promise((resolve, reject) => {
        const script = frame.contentDocument.createElement("script");
        script.src = new URL(url, location).href;
        script.onload = resolve;
        script.onerror = reject;
        frame.contentDocument.body.append(script);
      });
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
