package app

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/api"
	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/attest"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/mail"
	"github.com/service-dev/service/backend/internal/memory"
	"github.com/service-dev/service/backend/internal/oidc"
	"github.com/service-dev/service/backend/internal/passkey"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/backend/internal/telemetry"
	"github.com/service-dev/service/backend/internal/usage"
	"github.com/service-dev/service/backend/internal/web"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/loopback"
)

// server is a part of the backend that runs until ctx ends.
type server interface {
	Serve(ctx context.Context) error
}

// features holds the services that the API and the pages use.
type features struct {
	links       *link.Service
	mail        *mail.Sender
	accounts    *account.Service
	sessions    *sessions.Service
	assistants  *sessions.Assistants
	projects    *projects.Service
	grants      *grants.Service
	audit       *audit.Service
	assistant   *assistant.Service
	credentials *credentials.Service
	pages       *connpage.Service
	analytics   *analytics.Service
	providers   *oidc.Service
	passkeys    *passkey.Service
	telemetry   *telemetry.Service
	credit      *credit.Ledger
	gateway     *gateway.Service
	servers     *gateway.LocalServers // nil unless the backend is embedded
	usage       *usage.Service
	installs    *attest.Service
	memory      *memory.Service
}

// compose creates the features and the handler for the API and the pages.
func (a *App) compose(o Options) error {
	site, err := url.Parse(a.config.SiteURL)
	if err != nil {
		return fmt.Errorf("parse site_url: %w", err)
	}
	a.addresses = &clientAddresses{trusted: a.config.TrustedProxies, proxied: site.Scheme == "https", log: o.Log}
	f, err := a.features(o, site)
	if err != nil {
		return err
	}
	a.links, a.accounts, a.gateway = f.links, f.accounts, f.gateway
	a.serving = append(a.serving, f.links, a.hub, f.sessions, f.audit, f.analytics, f.telemetry, f.memory, f.installs)
	mux := http.NewServeMux()
	routes := a.newAPI(f, o)
	routes.Mount(mux)
	mux.HandleFunc("GET /api/sessions/{id}/app", a.hub.ServeApp)
	models := a.newModelAPI(f, o)
	models.Mount(mux)
	pages, err := a.newPages(f, o)
	if err != nil {
		return err
	}
	// f.mail is last because the gateway, the credit ledger and the accounts queue mail in it.
	a.last = append(a.last, f.gateway, f.credit, f.accounts, f.mail)
	pages.Mount(mux)
	limited := a.limitRequests(mux, map[string]http.HandlerFunc{
		"/api/": routes.TooMany, "/v1/": models.TooMany, "/": tooManyRequests,
	})
	a.handler = logRequests(o.Log, withPolicies(site.Scheme == "https", withoutWorkers(textOnly(limited))))
	base, err := url.Parse(o.Config.BaseURL)
	switch {
	case err != nil:
		return fmt.Errorf("parse the base URL: %w", err)
	case o.Embedded:
		a.handler = ownHostOnly(embeddedHosts(site), a.handler)
	case loopback.IsHost(base.Hostname()):
		a.handler = ownHostOnly(localHosts(site), a.handler)
	}
	return nil
}

func (a *App) features(o Options, site *url.URL) (*features, error) {
	c, hash := a.config, secret.NewHasher(a.config.HMACKey)
	f := &features{
		links: link.New(link.Options{Store: link.NewStore(a.db), Hasher: hash, Log: o.Log, Settings: link.Settings{
			CodeTTL: c.CodeTTL, PollInterval: c.PollInterval, Grace: c.Grace, UnusedAfter: c.UnusedAfter,
		}}),
		accounts: account.New(account.Options{Store: account.NewStore(a.db), Hasher: hash, Log: o.Log}),
		sessions: &sessions.Service{
			Store: sessions.NewStore(a.db), Hasher: hash, Now: time.Now, PerMinute: c.SessionsPerMinute, Logger: o.Log,
		},
		grants: &grants.Service{Store: grants.NewStore(a.db), Now: time.Now},
		audit:  &audit.Service{Store: audit.NewStore(a.db), Now: time.Now, Log: o.Log},
		pages:  &connpage.Service{Store: connpage.NewStore(a.db), Now: time.Now},
		analytics: analytics.New(analytics.Options{
			Store: analytics.NewStore(a.db), Hasher: hash, Quota: c.AnalyticsQuota, Log: o.Log,
		}),
		telemetry: telemetry.New(telemetry.Options{
			Store: telemetry.NewStore(a.db), Hasher: hash, MaxRows: int64(c.TelemetryMax), Log: o.Log,
		}),
	}
	f.assistants = &sessions.Assistants{Sessions: f.sessions, Store: f.sessions.Store, URL: c.BaseURL + "/v1"}
	a.hub = relay.New(relay.Options{Sessions: f.sessions, Gateways: f.assistants, Log: f.sessions.Store, Logger: o.Log,
		SiteOrigin: site.Scheme + "://" + site.Host})
	f.sessions.Live, f.assistants.Live = a.hub, a.hub
	f.projects = &projects.Service{Store: projects.NewStore(a.db), Hasher: hash, Closed: a.hub.Closed, Now: time.Now}
	catalogue, err := assistant.LoadCatalogue(c.AssistantCatalogue)
	if err != nil {
		return nil, fmt.Errorf("setting assistant_catalogue: %w", err)
	}
	f.assistant = &assistant.Service{Store: assistant.NewStore(a.db), Catalogue: catalogue, Now: time.Now}
	post, err := mail.New(mail.Options{Mail: c.Mail, Log: o.Log})
	if err != nil {
		return nil, err
	}
	f.mail, f.accounts.Mail, f.accounts.SiteURL = post, post, c.SiteURL
	if f.credit, err = NewLedger(c, a.db, o.Log, f.notifyOfSpending); err != nil {
		return nil, err
	}
	if f.credentials, err = a.newCredentials(o, hash); err != nil {
		return nil, err
	}
	f.installs = &attest.Service{Store: attest.NewStore(a.db), Hasher: hash, Credentials: f.credentials, Now: time.Now,
		Log: o.Log}
	f.memory = &memory.Service{Store: memory.NewStore(a.db), Hasher: hash, Sealer: f.credentials, Now: time.Now,
		Log: o.Log}
	if err := a.newGateway(f, o); err != nil {
		return nil, err
	}
	f.links.Revoked, f.links.Made = a.hub.Ended, f.notifyOfLink
	f.accounts.SignedIn = f.credit.Welcome
	f.accounts.Ended = func(accountID string) { a.hub.Ended(accountID, "") }
	if f.providers, err = oidc.Load(c.OIDCFile, nil, o.Log); err != nil {
		return nil, fmt.Errorf("setting oidc_providers: %w", err)
	}
	seal, err := hex.DecodeString(hash.Hash("web", "passkey ceremonies"))
	if err != nil {
		return nil, err
	}
	f.passkeys, err = passkey.New(passkey.Options{
		Store: passkey.NewStore(a.db), SiteURL: c.SiteURL, Key: seal, Added: f.accounts.PasskeyAdded,
	})
	if err != nil && !errors.Is(err, passkey.ErrAddress) {
		return nil, err
	}
	return f, nil
}

// notifyOfLink mails the account's owner about an agent that was linked.
func (f *features) notifyOfLink(l link.Link) {
	who := l.Requester
	f.accounts.LinkMade(l.AccountID, account.NewLink{
		Host: who.Host, OS: who.OS, Client: who.Client, Address: who.IP, At: l.LinkedAt,
	})
}

// newCredentials returns the credentials service, which refuses to store credentials if there is no
// encryption key.
func (a *App) newCredentials(o Options, hash secret.Hasher) (*credentials.Service, error) {
	keys, err := credentials.ParseKeys(a.config.CredentialsKeys)
	if err != nil && !errors.Is(err, credentials.ErrNotConfigured) {
		return nil, fmt.Errorf("%s: %w", a.config.CredentialsFrom, err)
	}
	providers, err := credentials.LoadProviders(a.config.CredentialsFile)
	if err != nil {
		return nil, fmt.Errorf("setting credential_providers: %w", err)
	}
	return credentials.New(credentials.Options{
		Store: credentials.NewStore(a.db), Hasher: hash, Keys: keys, Providers: providers, HTTP: o.HTTP, Log: o.Log,
	}), nil
}

func (a *App) newAPI(f *features, o Options) *api.API {
	c := a.config
	return api.New(api.Options{
		Links: f.links, Accounts: f.accounts, Sessions: f.sessions, Scripts: f.assistants, Projects: f.projects,
		Grants: f.grants, Audit: f.audit, Assistant: f.assistant, Credentials: f.credentials, Analytics: f.analytics,
		Pages: f.pages, GatewayUsage: f.usage, Telemetry: f.telemetry, Memory: f.memory,
		SiteURL: c.SiteURL, BaseURL: c.BaseURL, SupportContact: c.SupportContact,
		ClientIP: a.addresses.ip, CodesPerMinute: c.CodesPerMinute, Ready: a.db.Ping, Log: o.Log,
	})
}

func (a *App) newPages(f *features, o Options) (*web.Web, error) {
	c := a.config
	return web.New(web.Options{
		Accounts: f.accounts, Links: f.links,
		Simulators: &web.Simulators{
			Sessions: f.sessions, ServePage: a.hub.ServePage,
			AppEndpoint: func(id string) string { return api.AppEndpoint(c.BaseURL, id) },
		},
		Dashboard: &web.Dashboard{
			Projects: f.projects, Grants: f.grants, Audit: f.audit, Assistant: f.assistant,
			Credentials: f.credentials, Pages: f.pages, Credit: f.credit, Models: f.gateway,
			KeySources: gateway.KeySources{Store: gateway.NewStore(a.db), Now: time.Now}, Sessions: f.sessions,
			LocalServers: f.servers, Installs: f.installs, Memory: f.memory,
		},
		Analytics: f.analytics, IngestURL: c.BaseURL + "/api/analytics",
		Providers: f.providers, Passkeys: f.passkeys,
		Key: []byte(secret.NewHasher(c.HMACKey).Hash("web", "csrf")), InstanceID: o.InstanceID, SiteURL: c.SiteURL,
		Embedded: o.Embedded, AskProof: o.Embedded, StateDir: o.StateDir, SupportContact: c.SupportContact,
		Version: buildinfo.Version, ClientIP: a.addresses.ip, AddressKnown: a.addresses.isKnown, Log: o.Log,
		SignInWord: o.SignInWord, SignedOut: a.signedOut, TempDir: c.TempDir(),
	})
}
