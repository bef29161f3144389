package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses/render/fonts/packs"
)

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Clients that accept gzip receive the program compressed; all others receive it uncompressed.
func TestProgram_IsServedGzipped(t *testing.T) {
	w := &Web{assets: assetSet{}}
	w.assets.add(asset{name: programName, encoding: "gzip", body: shared(func() []byte { return packed(t, "\x00asm") }),
		unpacked: shared(func() []byte { return gunzip(bytes.NewReader(packed(t, "\x00asm"))) })})
	for accept, want := range map[string]string{"gzip, br": string(packed(t, "\x00asm")), "": "\x00asm"} {
		r := httptest.NewRequest(http.MethodGet, "/assets/"+programName, nil)
		r.SetPathValue("name", programName)
		r.Header.Set("Accept-Encoding", accept)
		rw := httptest.NewRecorder()
		w.asset(rw, r)
		if rw.Body.String() != want || rw.Header().Get("Content-Type") != "application/wasm" ||
			(accept != "") != (rw.Header().Get("Content-Encoding") == "gzip") {
			t.Errorf("Accept-Encoding %q: got %q with headers %v, want it compressed only on request",
				accept, rw.Body.String(), rw.Header())
		}
		r.Header.Set("If-None-Match", rw.Header().Get("ETag"))
		again := httptest.NewRecorder()
		if w.asset(again, r); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("second request: got status %d with %d bytes, want 304 without a body", again.Code, again.Body.Len())
		}
	}
}

// Clients that accept zstd receive a font as it is embedded; all others receive it uncompressed.
func TestFonts_AreServedAsClientsAcceptThem(t *testing.T) {
	w := &Web{assets: assetSet{}}
	w.assets.addFonts()
	packed, err := packs.Files.ReadFile("thai-400" + packs.Suffix)
	if err != nil {
		t.Fatal(err)
	}
	ttf, err := packs.Read("thai-400")
	if err != nil {
		t.Fatal(err)
	}
	for accept, want := range map[string][]byte{
		"gzip, br, zstd": packed, "ZSTD;q=0.5": packed, "gzip, br": ttf, "gzip, zstd;q=0": ttf, "zstd ; Q=0.0": ttf,
		"xzstd": ttf, "zstd;q=none": ttf, "*": ttf,
	} {
		r := httptest.NewRequest(http.MethodGet, w.assets["thai-400.ttf"].url(), nil)
		r.SetPathValue("name", "thai-400.ttf")
		r.Header.Set("Accept-Encoding", accept)
		rw := httptest.NewRecorder()
		w.asset(rw, r)
		if !bytes.Equal(rw.Body.Bytes(), want) || rw.Header().Get("Content-Type") != "font/ttf" {
			t.Errorf("Accept-Encoding %q: got %d bytes with headers %v, want the font", accept, rw.Body.Len(), rw.Header())
		}
		r.Method = http.MethodHead
		head := httptest.NewRecorder()
		if w.asset(head, r); head.Code != http.StatusOK || head.Body.Len() > 0 {
			t.Errorf("HEAD: got status %d with %d bytes, want 200 without a body", head.Code, head.Body.Len())
		}
	}
}

// Only the simulator page may compile WebAssembly, and no page may load anything from elsewhere.
func TestPolicy_OnlyTheSimulatorMayCompile(t *testing.T) {
	for name, policy := range map[string]string{"simulator": simulatorPolicy, "others": contentPolicy} {
		if strings.Contains(policy, "wasm-unsafe-eval") != (name == "simulator") {
			t.Errorf("%s has the policy %s, want wasm-unsafe-eval only for the simulator", name, policy)
		}
		// Photos and sound of the event log are created by the page itself.
		rest := strings.Replace(policy, "img-src 'self' data: blob:; media-src blob:;", "", 1)
		for _, loose := range []string{"'unsafe-inline'", "'unsafe-eval'", "http:", "https:", "*", "blob:"} {
			if strings.Contains(rest, loose) {
				t.Errorf("%s allows %s", name, loose)
			}
		}
	}
}

// Templates are parsed on first use, so this test finds errors in rarely shown pages.
func TestTemplates_Parse(t *testing.T) {
	assets, err := findAssets()
	if err != nil {
		t.Fatal(err)
	}
	templates, err := findTemplates(assets)
	if err != nil || len(templates) < 20 {
		t.Fatalf("got %d templates, %v; want at least 20", len(templates), err)
	}
	for name := range templates {
		if page, err := templates[name](); err != nil || page.Lookup("layout") == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, a := range assets {
		if len(a.body.bytes()) == 0 || a.version() == "" {
			t.Errorf("%s is empty", name)
		}
	}
}
