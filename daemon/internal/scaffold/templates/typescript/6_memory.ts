
//: if assistant
const userForm = /^[0-9a-f]{32}$/;

/**
 * userOf returns the secret that identifies the user to the service. Without given it makes one, once, and stores it:
 * in a page in localStorage, otherwise in a file that only the user can read.
 */
function userOf(app: string, given: string | undefined): string {
  if (given !== undefined) {
    if (userForm.test(given)) return given;
    throw assistantError("invalid_value", "user must be 32 lower-case hexadecimal digits", 400);
  }
  try {
    return storedUser(storeOf(app.replace(/[^\w-]/g, "_")));
  } catch (e) {
    throw assistantError("no_storage", `the user's secret cannot be stored: ${(e as Error).message}`);
  }
}

interface UserStore {
  read(): string | null;
  write(secret: string): void;
}

function storedUser(store: UserStore): string {
  let secret = store.read();
  if (!secret || !userForm.test(secret)) {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    store.write([...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(""));
    secret = store.read() ?? "";
  }
  return secret;
}

function storeOf(app: string): UserStore {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  let node: ((name: string) => any) | undefined;
  try {
    node = process.getBuiltinModule;
  } catch {
    // a page
  }
  if (!node) {
    const key = `service-user-${app}`;
    return { read: () => localStorage.getItem(key), write: (secret) => localStorage.setItem(key, secret) };
  }
  const [fs, path, os] = [node("node:fs"), node("node:path"), node("node:os")];
  const { LOCALAPPDATA, XDG_DATA_HOME } = process.env;
  const data = os.platform() === "win32" ? LOCALAPPDATA || path.join(os.homedir(), "AppData", "Local")
    : os.platform() === "darwin" ? path.join(os.homedir(), "Library", "Application Support")
      : XDG_DATA_HOME || path.join(os.homedir(), ".local", "share");
  const file = path.join(data, app, "glasses-user");
  const read = (): string | null => (fs.existsSync(file) ? fs.readFileSync(file, "utf8").trim() : null);
  return {
    read,
    write: (secret) => { // it gets its name in one step, so that no other process reads a part
      fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
      const own = `${file}.${secret.slice(0, 8)}`;
      fs.writeFileSync(own, secret, { mode: 0o600 });
      try {
        fs.linkSync(own, file); // fails if another process was first: its secret counts
      } catch {
        if (!userForm.test(read() ?? "")) { // an unusable file, or a file system without links
          fs.renameSync(own, file);
          return;
        }
      }
      fs.unlinkSync(own);
    },
  };
}
//: end
