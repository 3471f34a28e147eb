import { byId } from "./dom.ts";

/** Starts the page. What `start` answers is for scripts that look at the page, as its tests do. */
export function run(start: () => Promise<object>) {
  start().then(
    (parts) => {
      const page = { ...parts, drawn: 0 };
      Object.assign(window, { jitscribe: page });
      requestAnimationFrame(() => {
        page.drawn = performance.now();
        document.documentElement.dataset.ready = "true";
      });
    },
    (error: unknown) => {
      const message = byId("nothing");
      message.hidden = false;
      message.textContent = `The report cannot be shown: ${error}`;
      document.documentElement.dataset.ready = "failed";
    },
  );
}
