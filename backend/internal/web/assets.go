package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/service-dev/service/proto/glasses/driver/panelcheck"
	"github.com/service-dev/service/proto/glasses/driver/webbluetooth"
	"github.com/service-dev/service/proto/pagestyle"
)

//go:embed assets
var assetFiles embed.FS

// assetSet contains the static files by name. A file's URL contains a hash of its content, so browsers may cache it
// permanently.
type assetSet map[string]asset

type asset struct {
	name     string
	kind     string
	encoding string          // of what read returns: a content coding (RFC 9110), or empty
	read     func() []byte   // returns a copy, because the larger files are rarely requested
	unpacked func() []byte   // for a client that does not accept the encoding
	version  func() string   // hashes the content once
	imports  func() []string // of a script: names of those that it imports
}

const scriptType = "text/javascript; charset=utf-8"

func findAssets() (assetSet, error) {
	set := assetSet{}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return nil, fmt.Errorf("list assets: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			set.add(asset{name: e.Name(), read: embeddedFile(assetFiles, "assets/"+e.Name())})
		}
	}
	set.add(asset{name: "bluetooth.js", read: func() []byte { return webbluetooth.Script }})
	set.add(asset{name: "panelcheck.js", read: func() []byte { return panelcheck.Script }})
	set.add(asset{name: "report.css", read: func() []byte { return []byte(pagestyle.Report) }})
	set.addProgram()
	set.versionImports()
	return set, nil
}

// embeddedFile returns a function that reads a file, which must exist.
func embeddedFile(files embed.FS, name string) func() []byte {
	return func() []byte { return must(files.ReadFile(name)) }
}

// must returns the content of an embedded file. The tests read all of them.
func must(body []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return body
}

func (s assetSet) add(a asset) {
	a.kind = contentType(a.name)
	a.version = sync.OnceValue(func() string { return hashOf(a.read(), 6) })
	s[a.name] = a
}

// contentType does not use the machine's MIME table, because that may be wrong or missing.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return scriptType
	case ".svg":
		return "image/svg+xml"
	case ".wasm":
		return "application/wasm"
	case fontType:
		return "font/ttf"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

// url is the template function "asset". It returns the URL of a static file.
func (s assetSet) url(name string) (string, error) {
	a, ok := s[name]
	if !ok {
		return "", fmt.Errorf("no asset %s", name)
	}
	return a.url(), nil
}

func (a asset) url() string { return "/assets/" + a.name + "?v=" + a.version() }

func (w *Web) asset(rw http.ResponseWriter, r *http.Request) {
	a, ok := w.assets[r.PathValue("name")]
	if !ok {
		w.failWith(errNotFound).ServeHTTP(rw, r)
		return
	}
	h := rw.Header()
	setHeaders(h)
	// Without the version, for example of a worklet that a module loads, the browser revalidates its copy each time.
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == a.version() {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body := a.read
	if a.encoding != "" {
		h.Add("Vary", "Accept-Encoding")
		if accepts(r.Header.Get("Accept-Encoding"), a.encoding) {
			h.Set("Content-Encoding", a.encoding)
		} else {
			body = a.unpacked
		}
	}
	serveBytes(rw, r, a.kind, a.version(), body)
}

// accepts reports whether a value of Accept-Encoding names an encoding with a weight above 0 (RFC 9110 section
// 12.5.3). A wildcard does not count, so that a client that says nothing specific gets the uncompressed file.
func accepts(header, encoding string) bool {
	for one := range strings.SplitSeq(header, ",") {
		name, parameters, _ := strings.Cut(one, ";")
		if !strings.EqualFold(strings.TrimSpace(name), encoding) {
			continue
		}
		_, weight, hasWeight := strings.Cut(strings.ToLower(parameters), "q=")
		q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
		return !hasWeight || err == nil && q > 0
	}
	return false
}

// serveBytes responds with a file, or 304 if the client has this version. It calls body only if it sends the content.
func serveBytes(rw http.ResponseWriter, r *http.Request, contentType, version string, body func() []byte) {
	h := rw.Header()
	h.Set("Content-Type", contentType)
	h.Set("ETag", `"`+version+`"`)
	if strings.Contains(r.Header.Get("If-None-Match"), h.Get("ETag")) {
		rw.WriteHeader(http.StatusNotModified)
		return
	}
	if r.Method != http.MethodHead {
		_, _ = rw.Write(body()) // the client may have disconnected
	}
}

// hashOf returns the first n bytes of a SHA-256 hash in hexadecimal.
func hashOf(body []byte, n int) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:n])
}
