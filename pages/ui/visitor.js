// Keeps what the server signed, so that this browser is known again. Tabs take turns: what another tab has kept first is
// given to the session, so that all of them are one visitor.
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
  // A page that came without TLS from another machine has neither locks nor a store of cookies that tells of changes.
  const inTurn = () => (navigator.locks ? navigator.locks.request(name, keep) : keep());
  inTurn();
  // A tab may have read the cookie before it saw what another had just written.
  globalThis.cookieStore?.addEventListener("change", inTurn);
  return () => globalThis.cookieStore?.removeEventListener("change", inTurn);
}
