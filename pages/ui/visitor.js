// Stores the signed cookie by which the server recognises this browser. Tabs take turns: a cookie that another tab has
// stored first is sent to the session, so that all tabs belong to one visitor.
export default function ({ data, setStateValue }) {
  const { name, value, replaced, max_age_s } = data;
  const keep = () => {
    const cookie = document.cookie.split("; ").find((one) => one.startsWith(`${name}=`));
    const held = cookie?.slice(name.length + 1);
    if (held === value) return;
    if (held && held !== replaced) {
      setStateValue("held", held);
      return;
    }
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `${name}=${value}; Max-Age=${max_age_s}; Path=/; SameSite=Lax${secure}`;
  };
  // Without TLS, a page from another machine has neither locks nor `cookieStore`.
  const inTurn = () => (navigator.locks ? navigator.locks.request(name, keep) : keep());
  inTurn();
  // Check again on a change, because another tab may have written the cookie after this one read it.
  globalThis.cookieStore?.addEventListener("change", inTurn);
  return () => globalThis.cookieStore?.removeEventListener("change", inTurn);
}
