package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/attest"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/modelapi"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/backend/internal/usage"
	"github.com/service-dev/service/glasses/assistantscript"
)

// newGateway loads the catalogue of models and creates the gateway.
func (a *App) newGateway(f *features, o Options) error {
	catalogue, err := gateway.LoadCatalogue(a.config.GatewayCatalogue)
	if err != nil {
		return fmt.Errorf("setting gateway_catalogue: %w", err)
	}
	for _, m := range slices.Concat(catalogue.Models, catalogue.Realtime) {
		if m.Why != "" {
			o.Log.Warn("model not offered", "model", m.ID, "reason", m.Why)
		}
	}
	if err := catalogue.CheckOwnKeys(f.credentials.Knows); err != nil {
		return fmt.Errorf("setting gateway_catalogue: %w", err)
	}
	for _, m := range f.assistant.Catalogue.MemoryModels {
		if m.Upstream != "" && !catalogue.IsChat(m.Upstream) {
			return fmt.Errorf("setting assistant_catalogue: memory_models, %s: upstream %s is not a model of the gateway's "+
				"catalogue with the api chat", m.ID, m.Upstream)
		}
	}
	if o.Embedded {
		f.servers = gateway.NewLocalServers(gateway.NewStore(a.db), f.credentials, time.Now)
		f.servers.Changed = f.assistants.ModelsChanged
	}
	sources := gateway.KeySources{Store: gateway.NewStore(a.db), Now: time.Now}
	f.gateway = gateway.New(gateway.Options{
		Catalogue: catalogue, Purse: f.credit, Keys: callerKeys{projects.NewStore(a.db), f.sessions.Store, f.installs.Store},
		Sessions: callerSessions{f.assistants},
		Settings: f.assistant, OwnKeys: &gateway.OwnKeys{KeySources: sources, Credentials: f.credentials},
		Servers: f.servers, Memory: f.memory, Log: o.Log,
		Limits: o.GatewayLimits,
	})
	f.assistant.TextModels, f.assistants.HasModels = f.textModels, f.hasModels
	f.assistant.RealtimeModels, f.assistant.Remembers = f.realtimeModels, f.memory.Configured
	f.usage = &usage.Service{Ledger: f.credit, Models: f.gateway, KeySources: sources, Now: time.Now}
	return nil
}

// textModels returns the models that a project's assistant can use.
func (f *features) textModels(
	ctx context.Context, account, project string,
) (models []assistant.TextModel, standard string, err error) {
	all, standard, err := f.gateway.TextModels(ctx, gateway.Caller{Account: account, Project: project})
	if err != nil {
		return nil, "", err
	}
	for _, a := range all {
		price := a.Model.Prices
		models = append(models, assistant.TextModel{
			ID: a.ID, Name: a.Model.Name, Description: a.Model.Description, Why: a.Why,
			Price: assistant.TokenPrice{In: price.In, Cached: price.Cached, Out: price.Out},
		})
	}
	return models, standard, nil
}

// realtimeModels returns the models for realtime sessions that a project's assistant can use.
func (f *features) realtimeModels(context.Context, string, string) (offers []assistant.Offer, err error) {
	for _, a := range f.gateway.RealtimeModels() {
		o := assistant.Offer{ID: a.ID, Why: a.Why, Voices: a.Model.Voices()}
		o.Price.In, o.Price.Out = a.Model.MinutePrices()
		o.Price.InRate, o.Price.OutRate = a.Model.SoundRates()
		offers = append(offers, o)
	}
	return offers, nil
}

// hasModels reports whether the apps of a project can call a model through the gateway.
func (f *features) hasModels(ctx context.Context, account, project string) (bool, error) {
	return f.gateway.HasModels(ctx, gateway.Caller{Account: account, Project: project})
}

func (a *App) newModelAPI(f *features, o Options) *modelapi.API {
	return modelapi.New(modelapi.Options{Keys: f.projects, Sessions: f.assistants, Gateway: f.gateway,
		Installs: f.installs, ClientIP: a.addresses.ip, Log: o.Log})
}

// callerKeys looks up the keys that authenticate model calls: project keys, and the tokens of open sessions and of
// attested installs.
type callerKeys struct {
	projects *projects.Store
	sessions *sessions.Store
	installs *attest.Store
}

func (k callerKeys) LiveKeys(ctx context.Context, ids []string) ([]string, error) {
	live, err := k.projects.LiveKeys(ctx, ids)
	if err != nil || len(live) == len(ids) {
		return live, err
	}
	others := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(live, id) })
	installs, err := k.installs.LiveInstalls(ctx, others)
	if err != nil {
		return live, err
	}
	found, err := k.sessions.SomeSessions(ctx, others)
	for _, s := range found {
		if s.Open(time.Now()) {
			live = append(live, s.ID)
		}
	}
	return append(live, installs...), err
}

// callerSessions provides the sessions whose apps make model calls.
type callerSessions struct{ *sessions.Assistants }

func (s callerSessions) Script(ctx context.Context, id string) (*assistantscript.Script, error) {
	script, err := s.Assistants.Script(ctx, id)
	if errors.Is(err, sessions.ErrClosed) {
		err = gateway.ErrSessionOver
	}
	return script, err
}
