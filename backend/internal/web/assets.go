package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/service-dev/service/glasses/driver/panelcheck"
	"github.com/service-dev/service/glasses/driver/webbluetooth"
	"github.com/service-dev/service/internal/pagestyle"
)

//go:embed assets
var assetFiles embed.FS

// assetSet contains the static files by name. A file's URL contains a hash of its content, so browsers may cache it
// permanently.
type assetSet map[string]asset

type asset struct {
	name     string
	kind     string
	encoding string          // content coding of body (RFC 9110), or empty
	body     content         // content for clients that accept the encoding
	unpacked content         // content for clients that do not accept the encoding
	version  func() string   // hash of the content, computed once
	imports  func() []string // for a script, the names of the scripts that it imports
}

// content opens a body for one response. All responses share the bytes, because clients may read slowly.
type content func() io.Reader

const (
	htmlType = "text/html; charset=utf-8"
	pngType  = "image/png"
)

// inMemory returns the content of a body.
func inMemory(body []byte) content {
	return func() io.Reader { return bytes.NewReader(body) }
}

// shared returns content whose bytes make creates for the first response.
func shared(make func() []byte) content {
	body := sync.OnceValue(make)
	return func() io.Reader { return bytes.NewReader(body()) }
}

// bytes returns a copy of the content.
func (c content) bytes() []byte {
	body, err := io.ReadAll(c())
	if err != nil {
		panic(err) // the content is in memory
	}
	return body
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
			set.add(asset{name: e.Name(), body: embeddedFile(assetFiles, "assets/"+e.Name())})
		}
	}
	set.add(asset{name: "bluetooth.js", body: inMemory(webbluetooth.Script)})
	set.add(asset{name: "panelcheck.js", body: inMemory(panelcheck.Script)})
	set.add(asset{name: "report.css", body: inMemory([]byte(pagestyle.Report))})
	set.addProgram()
	set.versionImports()
	return set, nil
}

// embeddedFile returns the content of a file, which must exist.
func embeddedFile(files embed.FS, name string) content {
	return func() io.Reader { return must(files.Open(name)) }
}

// must returns an embedded file. It panics if there is an error; the tests read all embedded files.
func must[T any](file T, err error) T {
	if err != nil {
		panic(err)
	}
	return file
}

func (s assetSet) add(a asset) {
	a.kind = contentType(a.name)
	a.version = sync.OnceValue(func() string { return hashOf(a.body.bytes(), 6) })
	s[a.name] = a
}

// contentType returns the type for a name. It does not use the machine's MIME table, which may be wrong or missing.
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
		return "", fmt.Errorf("unknown asset %q", name)
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
	// A request without the version, for example for a worklet that a module loads, makes the browser revalidate its
	// copy.
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == a.version() {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body := a.body
	if a.encoding != "" {
		h.Add("Vary", "Accept-Encoding")
		if accepts(r.Header.Get("Accept-Encoding"), a.encoding) {
			h.Set("Content-Encoding", a.encoding)
		} else {
			body = a.unpacked
		}
	}
	serveContent(rw, r, a.kind, a.version(), body)
}

// accepts reports whether the header Accept-Encoding lists an encoding with a weight above 0 (RFC 9110 section 12.5.3).
// It ignores wildcards, so that a client that names no encoding gets the uncompressed file.
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

// serveContent responds with a file, or with 304 if the client already has this version.
func serveContent(rw http.ResponseWriter, r *http.Request, contentType, version string, body content) {
	h := rw.Header()
	h.Set("Content-Type", contentType)
	h.Set("ETag", `"`+version+`"`)
	if strings.Contains(r.Header.Get("If-None-Match"), h.Get("ETag")) {
		rw.WriteHeader(http.StatusNotModified)
		return
	}
	if r.Method != http.MethodHead {
		_, _ = io.Copy(rw, body()) // the client may have disconnected
	}
}

// hashOf returns the first n bytes of a SHA-256 hash, in hexadecimal.
func hashOf(body []byte, n int) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:n])
}
