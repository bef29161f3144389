package assistant

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/service-dev/service/backend/internal/yamlfile"
)

// Limits on a catalogue.
const (
	MaxCatalogueBytes = 256 << 10
	maxChoices        = 200
	maxID             = 64
	maxText           = 500 // characters
	maxPrice          = 1_000_000_000_000
)

// Catalogue holds the choices that the operator offers, and the defaults.
type Catalogue struct {
	RealtimeModels []Model  `yaml:"realtime_models"`
	MemoryModels   []Model  `yaml:"memory_models"`
	Voices         []Voice  `yaml:"voices"`
	Defaults       Defaults `yaml:"defaults"`

	// TextModels are the models in the gateway's catalogue. DefaultText is the ID of the model for projects that have
	// not chosen one, or "".
	TextModels  []TextModel `yaml:"-"`
	DefaultText string      `yaml:"-"`

	Effective []string `yaml:"-"` // the settings that have an effect on this backend
}

// Model is a model that can be chosen. Price is in micro-dollars per minute of conversation, nil if none is set.
type Model struct {
	ID          string   `yaml:"id"`
	Name        string   `yaml:"name"`
	Description string   `yaml:"description"`
	Voices      []string `yaml:"voices"` // IDs of the voices it can speak with; realtime models only
	Price       *int64   `yaml:"price_micro_usd_per_minute"`
	// Upstream is the ID of the gateway's model that writes the memory, or "" for the project's text model; memory models
	// only.
	Upstream string `yaml:"upstream"`

	// Why is the reason why a realtime model is currently not offered, or empty. Sound is what the gateway charges for a
	// minute of its sound, or nil if the gateway has no such model.
	Why   string      `yaml:"-"`
	Sound *SoundPrice `yaml:"-"`
}

// Voice is a voice that can be chosen.
type Voice struct {
	ID          string `yaml:"id"`
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
}

// Defaults are the config of a project that never changed its config.
type Defaults struct {
	RealtimeModel string `yaml:"realtime_model"`
	Voice         string `yaml:"voice"`
	MemoryModel   string `yaml:"memory_model"`
	SessionMemory bool   `yaml:"session_memory"`
	Sounds        bool   `yaml:"sounds"`
}

//go:embed catalogue.yaml
var builtIn []byte

// LoadCatalogue reads the operator's YAML file, or the built-in catalogue if path is empty. Errors contain the file and
// the invalid entry.
func LoadCatalogue(path string) (Catalogue, error) {
	if path == "" {
		return parse("the built-in catalogue", builtIn)
	}
	data, err := yamlfile.Read(path, MaxCatalogueBytes)
	if err != nil {
		return Catalogue{}, fmt.Errorf("read assistant catalogue: %w", err)
	}
	return parse(path, data)
}

func parse(name string, data []byte) (Catalogue, error) {
	if len(data) > MaxCatalogueBytes {
		return Catalogue{}, fmt.Errorf("%s: the file is over %d KB", name, MaxCatalogueBytes>>10)
	}
	var c Catalogue
	if err := yamlfile.Decode(data, &c); err != nil {
		return Catalogue{}, fmt.Errorf("%s: %w", name, err)
	}
	var tree yaml.Node
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return Catalogue{}, fmt.Errorf("%s: %w", name, err)
	}
	if err := errors.Join(wholePrices(&tree), c.check()); err != nil {
		return Catalogue{}, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// wholePrices rejects prices that are not integers, because the decoder would truncate them.
func wholePrices(n *yaml.Node) error {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == "price_micro_usd_per_minute" && !isWhole(child) {
			return fmt.Errorf("line %d: price_micro_usd_per_minute must be a whole number", child.Line)
		}
		if err := wholePrices(child); err != nil {
			return err
		}
	}
	return nil
}

func isWhole(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n.Tag == "!!int" || n.Tag == "!!null"
}

func (c Catalogue) check() error {
	voices := make([]entry, 0, len(c.Voices))
	for _, v := range c.Voices {
		voices = append(voices, entry{v.ID, v.Name, v.Description, nil})
	}
	if err := checkList("voices", voices); err != nil {
		return err
	}
	if err := checkList("realtime_models", entries(c.RealtimeModels)); err != nil {
		return err
	}
	if err := checkList("memory_models", entries(c.MemoryModels)); err != nil {
		return err
	}
	for _, m := range c.RealtimeModels {
		if err := c.checkVoices(m); err != nil {
			return err
		}
		if m.Upstream != "" {
			return fmt.Errorf("realtime_models, %s: upstream is for memory models only", m.ID)
		}
	}
	for _, m := range c.MemoryModels {
		if m.Voices != nil {
			return fmt.Errorf("memory_models, %s: voices are for realtime models only", m.ID)
		}
	}
	return c.checkDefaults()
}

func (c Catalogue) checkVoices(m Model) error {
	if len(m.Voices) == 0 {
		return fmt.Errorf("realtime_models, %s: voices must list the ids of the voices that the model can speak with", m.ID)
	}
	for i, v := range m.Voices {
		if c.voice(v) == nil {
			return fmt.Errorf("realtime_models, %s: voices contains %q, which is not in voices", m.ID, short(v))
		}
		if slices.Contains(m.Voices[:i], v) {
			return fmt.Errorf("realtime_models, %s: voices contains %s twice", m.ID, v)
		}
	}
	return nil
}

func (c Catalogue) checkDefaults() error {
	d := c.Defaults
	model := c.realtime(d.RealtimeModel)
	switch {
	case model == nil:
		return fmt.Errorf("defaults, realtime_model: %q is not in realtime_models", short(d.RealtimeModel))
	case c.voice(d.Voice) == nil:
		return fmt.Errorf("defaults, voice: %q is not in voices", short(d.Voice))
	case !slices.Contains(model.Voices, d.Voice):
		return fmt.Errorf("defaults, voice: %s is not a voice of %s", d.Voice, model.ID)
	case c.memory(d.MemoryModel) == nil:
		return fmt.Errorf("defaults, memory_model: %q is not in memory_models", short(d.MemoryModel))
	}
	return nil
}

// entry contains the fields that models and voices share.
type entry struct {
	id, name, description string
	price                 *int64
}

func entries(models []Model) []entry {
	out := make([]entry, 0, len(models))
	for _, m := range models {
		out = append(out, entry{m.ID, m.Name, m.Description, m.Price})
	}
	return out
}

var idForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

func checkList(list string, entries []entry) error {
	if n := len(entries); n == 0 || n > maxChoices {
		return fmt.Errorf("%[1]s must have 1 to %[3]d entries, not %[2]d", list, n, maxChoices)
	}
	seen := map[string]bool{}
	for i, e := range entries {
		switch {
		case len(e.id) > maxID || !idForm.MatchString(e.id):
			return fmt.Errorf("%s, entry %d: id %q must be 1 to %d lower-case letters, digits, dots, - or _", list, i+1,
				short(e.id), maxID)
		case seen[e.id]:
			return fmt.Errorf("%s, entry %d: the id %s occurs twice", list, i+1, e.id)
		case strings.TrimSpace(e.name) == "":
			return fmt.Errorf("%s, %s: name is missing", list, e.id)
		case len([]rune(e.name)) > maxText || len([]rune(e.description)) > maxText:
			return fmt.Errorf("%s, %s: name or description is over %d characters", list, e.id, maxText)
		case e.price != nil && (*e.price < 0 || *e.price > maxPrice):
			return fmt.Errorf("%s, %s: price_micro_usd_per_minute must be 0 to %d", list, e.id, int64(maxPrice))
		}
		seen[e.id] = true
	}
	return nil
}

func short(s string) string {
	if r := []rune(s); len(r) > maxID {
		return string(r[:maxID])
	}
	return s
}

func (c Catalogue) realtime(id string) *Model { return find(c.RealtimeModels, id, modelID) }
func (c Catalogue) memory(id string) *Model   { return find(c.MemoryModels, id, modelID) }
func (c Catalogue) voice(id string) *Voice {
	return find(c.Voices, id, func(v Voice) string { return v.ID })
}

func modelID(m Model) string { return m.ID }

func find[T any](list []T, id string, idOf func(T) string) *T {
	i := slices.IndexFunc(list, func(one T) bool { return idOf(one) == id })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// Gone lists the IDs in a config that are no longer in the catalogue.
func (c Catalogue) Gone(config Config) []string {
	var gone []string
	for _, used := range []struct {
		id      string
		offered bool
	}{
		{config.RealtimeModel, c.realtime(config.RealtimeModel) != nil},
		{config.Voice, c.voice(config.Voice) != nil},
		{config.MemoryModel, c.memory(config.MemoryModel) != nil},
		{config.TextModel, config.TextModel == "" || c.text(config.TextModel) != nil},
	} {
		if !used.offered {
			gone = append(gone, used.id)
		}
	}
	return gone
}
