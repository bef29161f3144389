// Package outbound decides which proxy HTTPS requests use and which certificates they trust. Plain HTTP is only for
// this machine and never uses a proxy. Texts from this package never contain the password of a proxy.
package outbound

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"

	"golang.org/x/net/http/httpproxy"

	"github.com/service-dev/service/internal/textfile"
)

// Settings contains the settings in config.yaml for outgoing requests. An empty field means the default of the process:
// HTTPS_PROXY and NO_PROXY from the environment, and the system's certificates. Settings are comparable.
type Settings struct {
	// HTTPSProxy is the URL of a proxy. It may contain a password.
	HTTPSProxy string
	// NoProxy lists hosts to which to connect without a proxy, in the format of NO_PROXY.
	NoProxy string
	// CAFile is the absolute path of a file with certificates (PEM) that are trusted in addition to the system's.
	CAFile string
}

// FromEnvironment returns the HTTPS proxy settings in the environment. As in other Go programs, the lower-case
// variable name takes precedence.
func FromEnvironment(getenv func(string) string) Settings {
	return Settings{
		HTTPSProxy: cmp.Or(getenv("https_proxy"), getenv("HTTPS_PROXY")),
		NoProxy:    cmp.Or(getenv("no_proxy"), getenv("NO_PROXY")),
	}
}

// String returns the settings without a password.
func (s Settings) String() string {
	proxy := s.HTTPSProxy
	if u, err := ParseProxy(proxy); err == nil {
		proxy = DisplayProxy(u)
	} else if proxy != "" {
		proxy = "invalid"
	}
	return fmt.Sprintf("{https_proxy: %q, no_proxy: %q, ca_file: %q}", proxy, s.NoProxy, s.CAFile)
}

// Or returns s with missing proxy settings filled in from other.
func (s Settings) Or(other Settings) Settings {
	s.HTTPSProxy, s.NoProxy = cmp.Or(s.HTTPSProxy, other.HTTPSProxy), cmp.Or(s.NoProxy, other.NoProxy)
	return s
}

// Proxy returns the proxy for a request to u, or nil for none. It ignores an invalid HTTPSProxy.
func (s Settings) Proxy(u *url.URL) *url.URL {
	proxies := httpproxy.Config{HTTPSProxy: s.HTTPSProxy, NoProxy: s.NoProxy}
	proxy, _ := proxies.ProxyFunc()(u) // fails only for HTTP_PROXY
	return proxy
}

// errProxy does not quote the address, which may contain a password.
var errProxy = errors.New("must be the address of a proxy: http://host:port, https://host:port or socks5://host:port")

// ParseProxy parses the address of a proxy. An address without a scheme is an HTTP proxy.
func ParseProxy(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		u, err = url.Parse("http://" + text)
	}
	switch {
	case err != nil, u.Hostname() == "", u.Path != "" && u.Path != "/", u.RawQuery != "" || u.ForceQuery, u.Fragment != "",
		!slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme):
		return nil, errProxy
	}
	return u, nil
}

// DisplayProxy returns the address of a proxy without its user name and password.
func DisplayProxy(u *url.URL) string { return u.Scheme + "://" + u.Host }

// maxCAFile is the maximum size of a certificate file, in bytes. System-wide bundles are smaller than 300 KB.
const maxCAFile = 2 << 20

// Roots returns the certificates to trust. It returns nil for the system's certificates, or a pool of the system's
// certificates and those in CAFile.
func (s Settings) Roots() (*x509.CertPool, error) {
	if s.CAFile == "" {
		return nil, nil
	}
	info, err := os.Stat(s.CAFile)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxCAFile:
		return nil, fmt.Errorf("%s must be a file of at most %d bytes", s.CAFile, maxCAFile)
	}
	data, err := os.ReadFile(s.CAFile)
	if err != nil {
		return nil, err
	}
	if data, err = textfile.Decode(data); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.CAFile, err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s contains no certificate in PEM form, which begins with -----BEGIN CERTIFICATE-----",
			s.CAFile)
	}
	return roots, nil
}

// Apply configures a transport with s. For empty fields it uses the environment of this process.
func (s Settings) Apply(t *http.Transport) error {
	s = s.Or(FromEnvironment(os.Getenv))
	t.Proxy = func(r *http.Request) (*url.URL, error) { return s.Proxy(r.URL), nil }
	roots, err := s.Roots()
	if err != nil {
		return err
	}
	if roots != nil {
		t.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	return nil
}
