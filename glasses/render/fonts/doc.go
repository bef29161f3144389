// Package fonts lists the font files of every script and parses them. It does not contain the files: programs that
// draw text import its package packs, and a page provides a file when a text needs it.
//
// The files are TrueType, compressed with Zstandard (Noto under the SIL Open Font License), and are unpacked when a
// text first needs them: this is five times as fast as unpacking WOFF, and browsers support it natively. The daemon,
// LocalSim and backends embed all of them, so that no other files need to be installed. The simulator page's program
// contains none: when a frame's texts need one, the page fetches it from its backend, by its hash, and holds the
// frame until then. Otherwise the result would report characters as missing that are drawn a moment later. A file
// that cannot be fetched is treated as missing.
//
// Fonts added by the user are tried after all built-in ones, and only in the daemon and LocalSim. A page never
// receives them, so the daemon draws browser sessions without them, too. The daemon passes names, hashes and paths to
// LocalSim at startup and after each change, and waits for its response, so that both use the font for frames after
// `fonts add`. It passes paths because the fonts would not fit in a message, and both programs run on the same
// machine as the same user. The third-party parsers may panic, or need much time or memory for a hostile file. So
// servicectl first checks a font and all its glyphs in its own process, which stops after 20 s or at 512 MB. Only the
// tables of an added font that drawing needs are parsed; drawing recovers from a panic, and then stops using that
// font.
package fonts
