//go:build linux

package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestImage_RunsWithoutPrivilege checks the content of the service-backend image, and that it runs without any
// privilege.
func TestImage_RunsWithoutPrivilege(t *testing.T) {
	requireRoot(t)
	require(t, map[string]string{"skopeo": "skopeo", "umoci": "umoci", "bwrap": "bubblewrap"})
	file := artefactOf(t, "service-backend-*-oci.tar")
	from, archs := throughRegistry(t, file)
	inspectImage(t, file, archs)
	rootfs := unpackImage(t, from)
	contentOfImage(t, rootfs)
	addMountPoints(t, rootfs)
	data := filepath.Join(filepath.Dir(rootfs), "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(data, imageUser, imageUser); err != nil {
		t.Fatal(err)
	}
	secrets := imageSecrets(t, filepath.Dir(rootfs))
	t.Run("drains", func(t *testing.T) { containerDrains(t, rootfs, data, secrets) })
	t.Run("roots", func(t *testing.T) { containerUsesRoots(t, rootfs, data, secrets) })
	t.Run("settings", func(t *testing.T) { containerNamesMissingSettings(t, rootfs, data) })
}

// inspectImage uses skopeo to read the archive for each of its processors.
func inspectImage(t *testing.T, file string, archs []string) {
	t.Helper()
	if !slices.Contains(archs, "amd64") || isFull() && !slices.Contains(archs, "arm64") {
		t.Errorf("the image is for the processors %q", archs)
	}
	for _, arch := range archs {
		var image struct {
			Architecture string
			Config       struct {
				User         string
				ExposedPorts map[string]any
				Volumes      map[string]any
				Labels       map[string]string
			}
		}
		out := output(t, "skopeo", "inspect", "--config", "--override-os=linux", "--override-arch="+arch, "oci-archive:"+file)
		if err := json.Unmarshal([]byte(out), &image); err != nil {
			t.Fatal(err)
		}
		_, port := image.Config.ExposedPorts["8080/tcp"]
		_, volume := image.Config.Volumes["/"+imageData]
		if image.Architecture != arch || image.Config.User != "65532:65532" || !port || !volume ||
			image.Config.Labels["org.opencontainers.image.revision"] == "" {
			t.Errorf("the image for %s is not as it should be: %s", arch, out)
		}
	}
}

// throughRegistry pushes the image to a registry, and returns its address there and its processors.
func throughRegistry(t *testing.T, file string) (address string, archs []string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	output(t, "tar", "-xf", file, "-C", dir)
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("the layout has %v, %v; want one index", manifest, err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://")+"/service-backend:test", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, index); err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	if digest, err := pulled.Digest(); err != nil || digest != manifest.Manifests[0].Digest {
		t.Errorf("pulled %v, %v; want %v", digest, err, manifest.Manifests[0].Digest)
	}
	platforms, err := pulled.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range platforms.Manifests {
		archs = append(archs, m.Platform.Architecture)
	}
	return "docker://" + ref.Name(), archs
}

// contentOfImage fails unless the root has exactly the known files, none of which the image's user could change or
// misuse.
func contentOfImage(t *testing.T, rootfs string) {
	t.Helper()
	var files []string
	err := filepath.WalkDir(rootfs, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(rootfs, path)
		owner := info.Sys().(*syscall.Stat_t).Uid
		switch {
		case name == imageData:
			if owner != imageUser || info.Mode().Perm() != 0o700 {
				t.Errorf("%s belongs to %d with %v", name, owner, info.Mode())
			}
		case owner != 0 || info.Mode().Perm()&0o022 != 0 || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0:
			t.Errorf("%s belongs to %d with %v", name, owner, info.Mode())
		}
		if !d.IsDir() {
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"LICENSE", "THIRD_PARTY", imageConfig, imageRoots, imageRoots + ".licence", imageProgram}
	if !slices.Equal(files, want) {
		t.Errorf("the image has the files %q, want %q", files, want)
	}
	roots, err := os.ReadFile(filepath.Join(rootfs, imageRoots))
	if err != nil {
		t.Fatal(err)
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(roots) || strings.Count(string(roots), "BEGIN") < 50 {
		t.Error("the image has no CA roots")
	}
}

// imageSecrets writes the two keys as an operator would, readable only by the container's user.
func imageSecrets(t *testing.T, dir string) string {
	t.Helper()
	secrets := filepath.Join(dir, "secrets")
	if err := os.Mkdir(secrets, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"hmac.key", "credentials.key"} {
		file := filepath.Join(secrets, key)
		if err := os.WriteFile(file, []byte(strings.Repeat("1f", 32)), 0o400); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(file, imageUser, imageUser); err != nil {
			t.Fatal(err)
		}
	}
	return secrets
}

const imageBaseURL = "SERVICE_BACKEND_BASE_URL=http://localhost:8080"

// containerDrains sends SIGTERM while a request is in flight. The request is answered, and the server exits with 0.
func containerDrains(t *testing.T, rootfs, data, secrets string) {
	c := startContainer(t, rootfs, data, []string{imageBaseURL}, secrets, "/run/secrets")
	if health := c.waitHealthy(); !strings.Contains(health, `"ok":true`) {
		t.Errorf("health says %s", health)
	}
	conn, err := c.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"scope":"account_full"}`
	fmt.Fprintf(conn, "POST /api/auth/device/code HTTP/1.1\r\nHost: localhost:8080\r\nContent-Type: application/json\r\n"+
		"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body))
	answer := bufio.NewReader(conn)
	if line, err := answer.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("the server does not read the request: %q, %v", line, err)
	}
	_, _ = answer.ReadString('\n')
	if err := syscall.Kill(c.pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for { // until the server has received the signal: it then accepts no connections
		other, err := c.dial()
		if err != nil {
			break
		}
		_ = other.Close()
	}
	_, _ = io.WriteString(conn, body)
	if response, err := http.ReadResponse(answer, nil); err != nil || response.StatusCode >= 500 {
		t.Errorf("the request in flight got %v, %v", response, err)
	}
	_ = conn.Close()
	<-c.exited
	if code := c.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the server exited with %d:\n%s", code, c.log)
	}
}

// containerNamesMissingSettings starts the server without any settings.
func containerNamesMissingSettings(t *testing.T, rootfs, data string) {
	c := startContainer(t, rootfs, data, nil)
	<-c.exited
	code, named := c.cmd.ProcessState.ExitCode(), regexp.MustCompile(`hmac|base_url`).MatchString(c.log.String())
	if code == 0 || !named {
		t.Errorf("the server exited with %d and does not name what is missing:\n%s", code, c.log)
	}
}

// containerUsesRoots signs in at a provider whose certificate is signed only by a test root. This fails with the
// image's own roots, and works if an operator mounts other roots.
func containerUsesRoots(t *testing.T, rootfs, data, secrets string) {
	root, certificate := testCertificate(t)
	dir := filepath.Dir(rootfs)
	roots := filepath.Join(dir, "roots.pem")
	providers := filepath.Join(dir, "providers.yaml")
	for file, text := range map[string]string{
		roots: string(root),
		providers: "providers:\n  - {id: acme, name: Acme, issuer: 'https://127.0.0.1:8443', client_id: service, " +
			"client_secret: canary-client-secret}\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(secrets, "providers.yaml"), must(os.ReadFile(providers)), 0o444); err != nil {
		t.Fatal(err)
	}
	env := []string{imageBaseURL, "SERVICE_BACKEND_OIDC_PROVIDERS=/run/secrets/providers.yaml"}
	for _, trusted := range []bool{false, true} {
		mounts := []string{secrets, "/run/secrets"}
		if trusted {
			mounts = append(mounts, roots, "/"+imageRoots)
		}
		c := startContainer(t, rootfs, data, env, mounts...)
		c.waitHealthy()
		asked := startProvider(t, c, certificate)
		location := signIn(t, c)
		leads := strings.HasPrefix(location, "https://127.0.0.1:8443/authorize?")
		if requests := asked.Load(); leads != trusted || (requests > 0) != trusted {
			t.Errorf("trusted %v: the sign-in leads to %q after %d requests", trusted, location, requests)
		}
		c.kill()
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// startProvider serves the discovery document of an OpenID Connect provider in the container's network, and counts
// requests.
func startProvider(t *testing.T, c *container, certificate tls.Certificate) *atomic.Int32 {
	t.Helper()
	listener, err := c.listen("127.0.0.1:8443")
	if err != nil {
		t.Fatal(err)
	}
	asked := &atomic.Int32{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		const issuer = "https://127.0.0.1:8443"
		_, _ = io.WriteString(w, `{"issuer":"`+issuer+`","authorization_endpoint":"`+issuer+`/authorize",`+
			`"token_endpoint":"`+issuer+`/token","jwks_uri":"`+issuer+`/keys",`+
			`"response_types_supported":["code"],"subject_types_supported":["public"],`+
			`"id_token_signing_alg_values_supported":["RS256"],"code_challenge_methods_supported":["S256"]}`)
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return asked
}

var csrfInput = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// signIn presses the provider's button on the sign-in page and returns the address it leads to.
func signIn(t *testing.T, c *container) string {
	t.Helper()
	page, err := c.client().Get("http://localhost:8080/signin")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(page.Body)
	_ = page.Body.Close()
	token := csrfInput.FindSubmatch(body)
	if token == nil {
		t.Fatalf("the sign-in page has no form: %s", body)
	}
	form := url.Values{"csrf": {string(token[1])}}
	const address = "http://localhost:8080/signin/oidc/acme"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", "http://localhost:8080")
	for _, cookie := range page.Cookies() {
		request.AddCookie(cookie)
	}
	response, err := c.client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return strings.TrimPrefix(response.Header.Get("Refresh"), "0; url=")
}

// testCertificate returns a root as PEM, and a certificate for 127.0.0.1 signed by it.
func testCertificate(t *testing.T) ([]byte, tls.Certificate) {
	t.Helper()
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test root"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	rootKey := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	leafKey := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	rootDER := must(x509.CreateCertificate(rand.Reader, ca, ca, &rootKey.PublicKey, rootKey))
	leafDER := must(x509.CreateCertificate(rand.Reader, leaf, ca, &leafKey.PublicKey, rootKey))
	pemRoot := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER})
	return pemRoot, tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: leafKey}
}
