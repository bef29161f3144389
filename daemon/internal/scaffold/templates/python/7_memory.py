

#: if assistant
def _user_of(app: str, given: Optional[str]) -> str:
    """The secret that identifies the user to the service. Without given it makes one, once, and stores it in a file
    that only the user can read."""
    if given is not None:
        if not _is_user(given):
            raise _assistant_error("invalid_value", "user must be 32 lower-case hexadecimal digits", 400)
        return given
    folder = "".join(c if c.isascii() and c.isalnum() or c in "-_" else "_" for c in app)
    path = os.path.join(_data_dir(), folder, "glasses-user")
    try:
        return _read_user(path) or _make_user(path)
    except OSError as e:
        raise _assistant_error("no_storage", "the user's secret cannot be stored: %s" % e)


def _is_user(secret: str) -> bool:
    return len(secret) == 32 and set(secret) <= set("0123456789abcdef")


def _data_dir() -> str:
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support")
    return os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")


def _read_user(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as f:
            secret = f.read(100).strip()
    except FileNotFoundError:
        return ""
    return secret if _is_user(secret) else ""


def _make_user(path: str) -> str:
    secret = os.urandom(16).hex()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    own = "%s.%s" % (path, secret[:8])  # gets its name in one step, so that no other process reads a part
    with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as f:
        f.write(secret)
    try:
        os.link(own, path)  # fails if another process was first: its secret counts
    except OSError:
        if not _read_user(path):  # an unusable file, or a file system without links
            os.replace(own, path)
            return _read_user(path)
    os.unlink(own)
    return _read_user(path)
#: end
