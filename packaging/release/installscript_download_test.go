package main

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// useWget makes install.sh find no curl and no minisign, but a wget.
func useWget(t *testing.T, w *installWorld, wget string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{
		"tar", "gzip", "readlink", "find", "sort", wget, "sha256sum", "uname", "cut", "sed", "mv", "ln", "rm",
		"mkdir", "basename", "dirname", "cat", "sh", "rmdir",
	} {
		path, err := exec.LookPath(name)
		if err != nil {
			skip(t, name+" is missing: apt-get install "+name)
		}
		w.must(os.Symlink(path, filepath.Join(dir, strings.Replace(name, "busybox", "wget", 1))))
	}
	shell, err := exec.LookPath(w.shell[0])
	w.must(err)
	w.shell = append([]string{shell}, w.shell[1:]...)
	w.path = dir
}

func wgetDownloads(t *testing.T, w *installWorld) {
	useWget(t, w, "wget")
	out := w.install()
	w.works("1.0.0")
	if !strings.Contains(out, "Not checked: the signature, because minisign is not installed") {
		t.Errorf("install.sh does not say that nothing checked the signature:\n%s", out)
	}
}

// serveHTTPS serves dist by https too, below /release, with redirects to it below the other paths, and returns the URL.
func serveHTTPS(t *testing.T, w *installWorld) string {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewUnstartedServer(mux)
	mux.Handle("/release/", http.StripPrefix("/release", http.FileServer(http.Dir(w.dist))))
	for path, target := range map[string]func() string{
		"/to-path": func() string { return "/release" }, "/to-https": func() string { return server.URL + "/to-path" },
		"/to-http": func() string { return w.url }, "/to-itself": func() string { return "/to-itself" },
	} {
		mux.HandleFunc(path+"/", func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, target()+strings.TrimPrefix(r.URL.Path, path), http.StatusFound)
		})
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	dir := t.TempDir()
	certificate := filepath.Join(dir, "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	w.must(os.WriteFile(certificate, pem.EncodeToMemory(block), 0o644))
	settings := filepath.Join(dir, "wgetrc")
	w.must(os.WriteFile(settings, []byte("ca_certificate = "+certificate+"\n"), 0o644))
	w.env = []string{"CURL_CA_BUNDLE=" + certificate, "WGETRC=" + settings}
	return server.URL
}

// releaseAt makes install.sh download 1.0.0 from a URL.
func (w *installWorld) releaseAt(url string) {
	w.t.Helper()
	script, err := stampInstallScript("1.0.0", url, w.public)
	w.must(err)
	w.write("install.sh", []byte(script))
}

// redirectsStayEncrypted follows redirects from https to https, and refuses those to http, with curl and with wget.
func redirectsStayEncrypted(t *testing.T, w *installWorld) {
	url := serveHTTPS(t, w)
	for _, program := range []string{"curl", "wget"} {
		if program == "wget" {
			useWget(t, w, "wget")
		}
		w.must(os.RemoveAll(w.prefix))
		for _, path := range []string{"/to-http", "/to-itself"} {
			w.releaseAt(url + path)
			out, err := w.run()
			if err == nil || !strings.Contains(out, "Next: ") {
				t.Errorf("%s downloads from %s: %v\n%s", program, path, err, out)
			}
			if _, err := os.Lstat(filepath.Join(w.prefix, "bin", "servicectl")); err == nil {
				t.Errorf("install.sh installs what %s downloads from %s", program, path)
			}
		}
		for _, path := range []string{"/release", "/to-path", "/to-https"} {
			w.must(os.RemoveAll(w.prefix))
			w.releaseAt(url + path)
			w.install()
			w.works("1.0.0")
		}
	}
}

// otherWgetNeedsSignature refuses to download with a wget that cannot be limited to https and checks no certificate.
func otherWgetNeedsSignature(t *testing.T, w *installWorld) {
	w.releaseAt(serveHTTPS(t, w) + "/release")
	useWget(t, w, "busybox")
	out, err := w.run()
	if err == nil || !strings.Contains(out, "cannot download securely") || !strings.Contains(out, "install curl") {
		t.Errorf("install.sh ended with %v:\n%s", err, out)
	}
}
