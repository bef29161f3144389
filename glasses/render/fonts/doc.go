// Package fonts lists the font files of every script and parses them. It does not contain the files: programs that
// draw text import its package packs, and a page provides a file when a text needs it.
//
// The files are TrueType (Noto under the SIL Open Font License), compressed with Zstandard. They are unpacked when a
// text first needs them, which is five times as fast as unpacking WOFF. The daemon, LocalSim and backends embed all
// files, so that no other files need to be installed. The simulator page's program contains none. When a frame's texts
// need a file, the page fetches it from its backend, by its hash, and holds the frame until then. Otherwise the result
// would report characters as missing that are drawn a moment later. A file that cannot be fetched counts as missing.
//
// Fonts added by the user are tried after all built-in ones, and only in the daemon and LocalSim. A page never receives
// them, so the daemon also draws browser sessions without them. The daemon passes names, hashes and paths to LocalSim
// at startup and after each change, and waits for its response, so that both use the font for frames after `fonts add`.
// It passes paths because the fonts would not fit in a message, and both programs run on the same machine as the same
// user. The third-party parsers may panic, or need much time or memory for a hostile file. servicectl therefore first
// checks a font and all its glyphs in its own process, which stops after 20 s or at 512 MB. Only the tables of an added
// font that drawing needs are parsed. If drawing panics, it recovers and no longer uses the font.
package fonts
