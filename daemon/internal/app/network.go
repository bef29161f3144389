package app

import (
	"cmp"
	"context"
	"net/url"
	"os"
	"strings"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/control"
	"github.com/service-dev/service/internal/outbound"
	"github.com/service-dev/service/internal/problem"
)

// outbound returns the settings for requests over HTTPS.
func (d *daemon) outbound() outbound.Settings { return d.config.Current().Outbound }

// explain adds two facts to p, a failure to reach a backend: the caller's variable that the daemon does not use, and
// the setting to use instead. Other failures, such as a sandbox that forbids the connection, keep their hint.
func (d *daemon) explain(ctx context.Context, address string, p *problem.Error) {
	if p.HTTPStatus != 0 || !p.Retryable && !p.Untrusted {
		return
	}
	ignored := d.config.IgnoredProxy
	if p.Untrusted {
		ignored = d.config.IgnoredCertificates
	}
	if v, ok := ignored(caller.From(ctx), address); ok {
		p.Message += "; the daemon does not use " + v.Name + " of the calling program"
		p.FixHint = v.Fix + " Then try again."
	}
}

// checkNetwork reports the proxy and certificates that calls use, and the caller's variables with a different value.
// Such variables are a problem only if the backend cannot be reached.
func (d *daemon) checkNetwork(ctx context.Context, reached bool) control.Check {
	const name = "proxy and certificates"
	b, err := d.backendOf(ctx)
	if err != nil {
		return passed(name, "not checked: "+err.Error()) // the configuration check reports the error
	}
	u, err := url.Parse(b.URL)
	if err != nil || u.Scheme != "https" {
		return passed(name, "not used: the backend is on this machine")
	}
	detail := d.usedNetwork(u)
	var fixes []string
	for _, ignored := range []func(caller.Caller, string) (config.Ignored, bool){
		d.config.IgnoredProxy, d.config.IgnoredCertificates,
	} {
		if v, ok := ignored(caller.From(ctx), b.URL); ok {
			detail += "; " + v.Name + " of this shell is not used"
			fixes = append(fixes, v.Fix)
		}
	}
	if reached || len(fixes) == 0 {
		return passed(name, detail)
	}
	return warning(name, detail, strings.Join(fixes, " "))
}

// usedNetwork describes the proxy and the certificates used for calls to u. It omits passwords.
func (d *daemon) usedNetwork(u *url.URL) string {
	s := d.outbound()
	detail := "no proxy"
	if proxy := s.Or(outbound.FromEnvironment(os.Getenv)).Proxy(u); proxy != nil {
		from := "HTTPS_PROXY of the daemon"
		if s.HTTPSProxy != "" {
			from = "https_proxy in config.yaml"
		}
		detail = outbound.DisplayProxy(proxy) + " (" + from + ")"
	}
	detail += "; certificates of " +
		cmp.Or(config.OwnCertificates("SSL_CERT_FILE"), config.OwnCertificates("SSL_CERT_DIR"), "the system")
	if s.CAFile != "" {
		detail += " and " + s.CAFile
	}
	return detail
}
