// Loads the script of a component from the server's static files, and passes every change of the data to it.

const script = import(new URL("ADDRESS", document.baseURI).href);

export default function (component) {
  let close;
  let left = false;
  script
    .then(({ default: draw }) => {
      if (!left) close = draw(component);
    })
    .catch((error) => {
      component.parentElement.textContent = error.message;
    });
  return () => {
    left = true;
    close?.();
  };
}
