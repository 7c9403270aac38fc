// Keeps what the server signed, so that this browser is known again. Nothing else reads it.
export default function ({ data }) {
  const { name, value, max_age_s } = data;
  const held = document.cookie.split("; ").includes(`${name}=${value}`);
  if (!held) {
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `${name}=${value}; Max-Age=${max_age_s}; Path=/; SameSite=Lax${secure}`;
  }
}
