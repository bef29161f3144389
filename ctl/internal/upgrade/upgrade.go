// Package upgrade finds the newest release of this distribution, and how the running copy was installed. It only sends
// two GET requests for files with fixed names, and changes nothing. It must not depend on commands or texts for users.
package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/loopback"
)

// Limits of the requests: their total time, and the sizes of the two files in bytes.
const (
	timeout          = 20 * time.Second
	maxSums          = 1 << 20
	maxSignature     = 4 << 10
	maxRedirects     = 5
	sumsName         = "SHA256SUMS"
	signatureSuffix  = ".minisig"
	archivePrefix    = "service-"
	maxVersionLength = 64
)

// MaxAge is the maximum age of the signature of the release list. Without it, an attacker between this machine and the
// publisher could serve an old list forever and hide every later release.
const MaxAge = 90 * 24 * time.Hour

// Errors returned by Newest.
var (
	// ErrNotConfigured means that this build contains no release source.
	ErrNotConfigured = errors.New("this build does not know where its releases are")
	// ErrUntrusted means that the signature of the releases is missing or wrong.
	ErrUntrusted = errors.New("the list of releases is not signed by the key of this build")
	// ErrStale means that the list is signed but may be outdated: its signature has no timestamp or is too old.
	ErrStale = errors.New("the list of releases may be outdated")
)

// Source is where a distribution's releases are published: the URL of the directory that contains SHA256SUMS, and the
// minisign key that signs it.
type Source struct{ URL, Key string }

// BuiltIn returns the source that is compiled in.
func BuiltIn() Source { return Source{URL: buildinfo.ReleaseURL, Key: buildinfo.ReleaseKey} }

// Newest returns the newest version in SHA256SUMS. It returns ErrStale if the signature of SHA256SUMS is older than
// MaxAge at now. It makes no request if s is not configured.
func (s Source) Newest(ctx context.Context, now time.Time) (string, error) {
	if s.URL == "" || s.Key == "" {
		return "", ErrNotConfigured
	}
	base, err := url.Parse(s.URL)
	if err != nil || !isAllowed(base) {
		return "", fmt.Errorf("the address of the releases must begin with https: %s", s.URL)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	sums, err := fetch(ctx, base.JoinPath(sumsName), maxSums)
	if err != nil {
		return "", err
	}
	signature, err := fetch(ctx, base.JoinPath(sumsName+signatureSuffix), maxSignature)
	if err != nil {
		return "", err
	}
	comment, err := verify(s.Key, sums, signature)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	switch at, ok := signedAt(comment); {
	case !ok:
		return "", fmt.Errorf("%w: its signature has no timestamp", ErrStale)
	case now.Sub(at) > MaxAge:
		return "", fmt.Errorf("%w: it was signed on %s, more than %d days ago", ErrStale, at.Format(time.DateOnly),
			MaxAge/(24*time.Hour))
	}
	return newestIn(string(sums))
}

// isAllowed reports whether u may be requested: only https is safe, except on this machine.
func isAllowed(u *url.URL) bool {
	if u.Scheme == "https" {
		return u.Host != ""
	}
	return u.Scheme == "http" && loopback.IsHost(u.Hostname())
}

// fetch downloads a file of at most limit bytes.
func fetch(ctx context.Context, from *url.URL, limit int64) ([]byte, error) {
	client := http.Client{CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects || !isAllowed(req.URL) || from.Scheme == "https" && req.URL.Scheme != "https" {
			return fmt.Errorf("refused the redirect to %s", req.URL.Redacted())
		}
		return nil
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "servicectl")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s responded with %s", from.Redacted(), resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from.Redacted(), err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is longer than %d bytes", from.Redacted(), limit)
	}
	return data, nil
}

// newestIn returns the newest version among lines of the form "SUM  service-VERSION-OS-ARCH.tar.gz" (or .zip).
func newestIn(sums string) (string, error) {
	newest := ""
	for line := range strings.Lines(sums) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		version, ok := versionOf(name)
		if !ok {
			continue
		}
		if order, ok := buildinfo.Compare(version, newest); newest == "" || ok && order > 0 {
			newest = version
		}
	}
	if newest == "" {
		return "", errors.New("the list of releases contains no version")
	}
	return newest, nil
}

// versionOf returns the version in the name of an archive.
func versionOf(name string) (version string, ok bool) {
	rest, ok := strings.CutPrefix(name, archivePrefix)
	if !ok {
		return "", false
	}
	base, isTar := strings.CutSuffix(rest, ".tar.gz")
	base, isZip := strings.CutSuffix(base, ".zip")
	if isTar == isZip {
		return "", false
	}
	for range 2 { // remove the architecture, then the operating system
		n := strings.LastIndexByte(base, '-')
		if n < 0 {
			return "", false
		}
		base = base[:n]
	}
	_, ok = buildinfo.Compare(base, base)
	isPlain := !strings.ContainsFunc(base, func(r rune) bool { // accept only plain text, because the version is printed
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(".-+", r)
	})
	return base, ok && isPlain && len(base) <= maxVersionLength
}
