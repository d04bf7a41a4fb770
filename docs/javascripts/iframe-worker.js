// The search of this site runs in a Worker, and browsers start none on a page that was opened from
// a disk. There, a frame that is not shown does its work instead: it loads the same script, and
// messages between the two go as events. The theme's script looks for the name IFrameWorker.
(() => {
  if (location.protocol !== "file:") return;

  class IFrameWorker extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...scripts) =>
        scripts.reduce((before, script) => before.then(() => this.load(script)), Promise.resolve());
      this.ready = this.load(address);
    }

    load(address) {
      const inside = this.frame.contentDocument;
      const script = inside.createElement("script");
      script.src = address;
      return new Promise((done, failed) => {
        script.onload = done;
        script.onerror = failed;
        inside.body.append(script);
      });
    }

    postMessage(data) {
      const inside = this.frame.contentWindow;
      this.ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
})();
