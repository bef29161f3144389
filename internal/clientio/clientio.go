// Package clientio defines the protocol by which a client's own process opens pages and reads and writes files for the
// daemon. The daemon decides what to open, read or write. The client's process executes this in its own environment and
// with its own permissions. A client can thus never make the daemon run a program or access a file.
//
// The client's process dials mcp.sock and sends a Handshake with a token instead of an MCP handshake. The daemon then
// sends requests, and the client's process responds to them one by one, with one JSON object per line. The package
// contains types and limits. It is independent of both implementations.
package clientio

import "encoding/json"

// Handshake is the first line of such a connection. The daemon responds as to an MCP handshake, with {"ok":true} or an
// error.
type Handshake struct {
	// IO is Version.
	IO int `json:"io"`
	// Token is a secret shared by this client and the daemon (see IsToken). The daemon chooses it for service-mcp, and
	// servicectl chooses it for its own calls.
	Token string `json:"token"`
	// Asked is set if the daemon requested the connection. The daemon then refuses the connection if no call is waiting
	// for it any longer.
	Asked bool `json:"asked,omitempty"`
}

// Version is the version of this contract.
const Version = 1

// Limits of requests and responses.
const (
	// MaxData is the maximum size of the data of one request or response in bytes, before base64 encoding.
	MaxData = 32 << 20
	// MaxLine is the maximum length of a line in bytes. It allows for MaxData in base64 and the other fields.
	MaxLine = MaxData/3*4 + 64<<10
	// MaxEntries is the maximum number of entries in a listing.
	MaxEntries = 4096
)

// Operations.
const (
	// Open opens the page URL in the user's browser. Response: Opened, Reason.
	Open = "open"
	// Read reads the regular file Path of at most Limit bytes. Response: Data.
	Read = "read"
	// Stat describes Path. Response: Info.
	Stat = "stat"
	// List lists the directory Path by name. Response: Entries.
	List = "list"
	// Find searches the directory Path and its parents for the file Name, and reads the first match of at most Limit
	// bytes. Response: Path and Data, or CodeNotExist.
	Find = "find"
	// Write writes Data to Path atomically with mode Mode, and creates missing directories with mode DirMode. If
	// Replace is set, it replaces an existing file; otherwise the response is CodeExists.
	Write = "write"
	// MakeDir creates the directory Path and missing parents with mode DirMode.
	MakeDir = "mkdir"
	// Remove removes the regular file Path if Data is the SHA-256 of its content. It does not remove a symbolic link.
	// Clients of earlier versions refuse this operation.
	Remove = "remove"
)

// Request is one operation. Paths are absolute. If Root is set, they are relative to Root, use slashes, and must not
// leave Root, even through symbolic links.
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

// Error codes of a response.
const (
	CodeNotExist   = "not_exist"
	CodeExists     = "exists"
	CodePermission = "permission"
	CodeNotRegular = "not_regular" // a folder, pipe or device, or a symbolic link that must not be followed
	CodeTooLarge   = "too_large"
	CodeRefused    = "refused" // this process does not execute such requests
	CodeFailed     = "failed"  // any other system error
)

// Response is the response to the request with the same ID. Code and Message are empty on success.
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

// Path is a path or a file name. It is base64 on the wire, because JSON requires UTF-8 and names on older systems may
// be in another encoding.
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

// Info describes a file. If Root is not set, symbolic links are followed.
type Info struct {
	Kind    string `json:"kind"`
	Size    int64  `json:"size"`
	ModTime int64  `json:"modTime"` // Unix nanoseconds
	// Private reports whether only the owner can read the file.
	Private bool `json:"private"`
}

// Entry is an entry of a directory. Symbolic links have the kind KindOther.
type Entry struct {
	Name Path   `json:"name"`
	Kind string `json:"kind"`
}

// Reasons for not opening a page.
const (
	ReasonDisabled  = "disabled"   // SERVICE_NO_AUTO_OPEN=1
	ReasonNoDesktop = "no_desktop" // the client has no desktop session
	ReasonRefused   = "refused"    // not an http or https URL with a host
	ReasonFailed    = "failed"     // the platform's command is missing or failed
	ReasonClient    = "client"     // the client cannot open pages, or does not respond
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
