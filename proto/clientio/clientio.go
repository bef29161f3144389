// Package clientio is the contract by which a client's own process opens pages and reads and writes files for the
// daemon. The daemon decides what is opened or written; the process of the client that asked carries it out, in its own
// environment and with its own rights, so that a client can never make the daemon run a program or touch a file.
//
// The client's process dials mcp.sock and sends a handshake that holds a token instead of MCP (see Handshake). Then the
// daemon sends requests and the client's process answers each, one JSON object a line. A request is answered before the
// next one is sent. The package holds shapes and bounds; it must not know how either side carries them out.
package clientio

import "encoding/json"

// Handshake is the line with which a client's process opens such a connection. The daemon answers with the same kind of
// line as for MCP: {"ok":true} or a refusal.
type Handshake struct {
	// IO is Version.
	IO int `json:"io"`
	// Token is known to this client and the daemon alone (IsToken). The daemon chose it for an agent's client; servicectl
	// chooses one for its own calls.
	Token string `json:"token"`
	// Asked is set where the daemon asked for the connection: it is refused when nobody waits for it any more.
	Asked bool `json:"asked,omitempty"`
}

// Version is the version of this contract.
const Version = 1

// Bounds.
const (
	// MaxData is how many bytes one request or response carries, before base64.
	MaxData = 32 << 20
	// MaxLine bounds a line in bytes: MaxData in base64 and the fields around it.
	MaxLine = MaxData/3*4 + 64<<10
	// MaxEntries is how many entries of a folder are listed.
	MaxEntries = 4096
)

// Operations.
const (
	// Open opens the page URL in the person's browser. Answer: Opened, Reason.
	Open = "open"
	// Read reads the regular file Path of at most Limit bytes. Answer: Data.
	Read = "read"
	// Stat describes Path. Answer: Info.
	Stat = "stat"
	// List lists the folder Path by name. Answer: Entries.
	List = "list"
	// Find looks for the file Name in the folder Path and upward, and reads the first one of at most Limit bytes. Answer:
	// Path and Data; CodeNotExist when there is none.
	Find = "find"
	// Write writes Data to Path, whole or not at all, with mode Mode. Folders that are missing are made with mode DirMode.
	// A file that exists is replaced if Replace is set and refused with CodeExists if not.
	Write = "write"
	// MakeDir makes the folder Path, and those above it, with mode DirMode.
	MakeDir = "mkdir"
)

// Request is one operation. Paths are absolute; where Root is set they are relative to it, with slashes, and nothing
// leads out of Root, no symbolic link either.
type Request struct {
	ID      int64  `json:"id"`
	Op      string `json:"op"`
	URL     string `json:"url,omitempty"`
	Root    Path   `json:"root,omitempty"`
	Path    Path   `json:"path,omitempty"`
	Name    Path   `json:"name,omitempty"`
	Data    []byte `json:"data,omitempty"`
	Limit   int64  `json:"limit,omitempty"`
	Mode    uint32 `json:"mode,omitempty"`
	DirMode uint32 `json:"dirMode,omitempty"`
	Replace bool   `json:"replace,omitempty"`
}

// Codes of a response that did not succeed.
const (
	CodeNotExist   = "not_exist"
	CodeExists     = "exists"
	CodePermission = "permission"
	CodeNotRegular = "not_regular" // a folder, pipe, device, or a symbolic link where none is followed
	CodeTooLarge   = "too_large"
	CodeRefused    = "refused" // the request is not one that this process carries out
	CodeFailed     = "failed"  // anything else that the system said
)

// Response answers the request of the same ID. Code is empty on success; Message then is too.
type Response struct {
	ID      int64   `json:"id"`
	Code    string  `json:"code,omitempty"`
	Message string  `json:"message,omitempty"`
	Opened  bool    `json:"opened,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Path    Path    `json:"path,omitempty"`
	Data    []byte  `json:"data,omitempty"`
	Info    *Info   `json:"info,omitempty"`
	Entries []Entry `json:"entries,omitempty"`
}

// Path is a path or a name of the file system. On the wire it is base64: names of older systems are not UTF-8, which a
// JSON string has to be.
type Path string

// MarshalJSON implements json.Marshaler.
func (p Path) MarshalJSON() ([]byte, error) { return json.Marshal([]byte(p)) }

// UnmarshalJSON implements json.Unmarshaler.
func (p *Path) UnmarshalJSON(data []byte) error {
	var raw []byte
	err := json.Unmarshal(data, &raw)
	*p = Path(raw)
	return err
}

// Kinds of a file.
const (
	KindFile  = "file"
	KindDir   = "dir"
	KindOther = "other"
)

// Info describes a file. Without Root a symbolic link is followed.
type Info struct {
	Kind    string `json:"kind"`
	Size    int64  `json:"size"`
	ModTime int64  `json:"modTime"` // Unix nanoseconds
	// Private is true when nobody but its owner may read it.
	Private bool `json:"private"`
}

// Entry is one entry of a folder; symbolic links are KindOther.
type Entry struct {
	Name Path   `json:"name"`
	Kind string `json:"kind"`
}

// Reasons why a page was not opened.
const (
	ReasonDisabled  = "disabled"   // SERVICE_NO_AUTO_OPEN=1
	ReasonNoDesktop = "no_desktop" // the client has no desktop session
	ReasonRefused   = "refused"    // the URL is not a web page's
	ReasonFailed    = "failed"     // the platform's command is missing or failed
	ReasonClient    = "client"     // the client opens no pages: it is not service-mcp or servicectl, or does not answer
)

// IsToken reports whether s has the form of a token: 20 to 64 letters and digits.
func IsToken(s string) bool {
	if len(s) < 20 || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
