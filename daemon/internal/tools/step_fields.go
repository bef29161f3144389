package tools

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/internal/strictjson"
)

// stepFields is implemented by arguments that are the fields of a kind of step. They are decoded by the rules for
// steps, so that a tool and a step accept the same fields.
type stepFields interface{ rules() strictjson.Rules }

// byRules describes arguments in a tool's schema as the schema for scenarios does.
func byRules(rules strictjson.Rules) option {
	return func(root *schema) {
		for _, at := range slices.Sorted(maps.Keys(rules)) {
			rule := rules[at]
			path := strings.NewReplacer("[]", "", ".*", "").Replace(at)
			if path == "" {
				if rule.Required != nil {
					required(rule.Required...)(root)
				}
				continue
			}
			on(path, func(s *schema) {
				if rule.What != "" {
					s.Description = rule.What
				}
				if rule.Words != nil {
					oneOf(rule.Words...)(s)
				}
				s.Default = rule.Default
				if inner := innermost(s); rule.Min != nil || rule.Max != nil {
					inner.Minimum, inner.Maximum = intOf(rule.Min), intOf(rule.Max)
				}
			})(root)
		}
	}
}

func intOf(n *int64) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}

// strictly returns a decoder that applies rules. It treats null as a missing argument, because some clients send null.
func strictly[A any](rules strictjson.Rules) func(json.RawMessage, *A) error {
	shape := sync.OnceValue(func() *strictjson.Shape[A] {
		s := strictjson.Of[A](rules)
		s.Nulls = true
		return s
	})
	return func(args json.RawMessage, into *A) error {
		names := fieldsOf(into)
		args, err := objectOf(args, names)
		if err != nil {
			return err
		}
		return argumentError(shape().Decode(args, into), names)
	}
}

// argumentError returns the agent's error for arguments that strictjson rejected.
func argumentError(err error, names []string) error {
	var refused *strictjson.Error
	if !errors.As(err, &refused) {
		return err
	}
	message := refused.Message
	if refused.Path != "" {
		message = "argument " + refused.Path + ": " + message
	}
	if refused.Want != "" {
		message += "; expected " + refused.Want
	}
	hint := "Pass only these: " + strings.Join(names, ", ") + "."
	if refused.Example != "" {
		hint += " For example: " + refused.Example + "."
	}
	return invalid(message, hint)
}

// kindRules returns the rules for arguments that are the fields of a kind of step. example shows the arguments.
func kindRules(name, example string) strictjson.Rules {
	rules := maps.Clone(scenario.KindRules(name))
	whole := rules[""]
	whole.Example = example
	rules[""] = whole
	return rules
}
