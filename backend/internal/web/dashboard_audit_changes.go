package web

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
)

// valueChange is one value before and after a change, as shown on the page. Entries of the log contain no secrets.
type valueChange struct{ Name, Before, After string }

const (
	arrow = " → "
	// maxShownValue limits a value on the page, in characters; a connection page may have long texts.
	maxShownValue = 160
)

// changesOf returns the values that an entry changed: the stored ones, or the ones in a summary such as "voice: ember
// -> harbor; sounds: on -> off". It returns nil if the entry contains none.
func changesOf(e audit.Entry) []valueChange {
	if changes := storedChanges(e); len(changes) > 0 {
		return changes
	}
	var changes []valueChange
	for part := range strings.SplitSeq(summaryOf(e), "; ") {
		before, after, isChange := strings.Cut(part, arrow)
		name, before, isNamed := strings.Cut(before, ": ")
		if !isChange || !isNamed {
			return nil // summaries of other entries are sentences
		}
		changes = append(changes, valueChange{capital(name), clipValue(before), clipValue(after)})
	}
	return changes
}

// storedChanges compares the values before and after a change. Only entries that can be undone store them.
func storedChanges(e audit.Entry) (changes []valueChange) {
	var before, after map[string]json.RawMessage
	if json.Unmarshal(e.Before, &before) != nil || json.Unmarshal(e.After, &after) != nil {
		return nil
	}
	names := slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, became := shownValue(name, before[name]), shownValue(name, after[name])
		if was != became {
			changes = append(changes, valueChange{changedName(name), was, became})
		}
	}
	return changes
}

// changedName returns the label of a changed setting: a field of an assistant, a connection page or a spending cap.
func changedName(name string) string {
	if label, ok := settingNames[name]; ok {
		return label
	}
	if label, ok := map[string]string{"supportUrl": "Support address", "privacyUrl": "Privacy address",
		"day": "Cap of a day", "month": "Cap of a month",
		credit.CapKeys: "Daily allowance of project keys"}[name]; ok {
		return label
	}
	return capital(name)
}

// shownValue formats a JSON value for display.
func shownValue(name string, raw json.RawMessage) string {
	var value any
	if len(raw) == 0 || json.Unmarshal(raw, &value) != nil {
		return "none"
	}
	switch value := value.(type) {
	case nil:
		return "none"
	case bool:
		return onOff(value)
	case string:
		if value == "" {
			return "none"
		}
		return clipValue(value)
	case float64:
		if name == "day" || name == "month" || name == credit.CapKeys {
			return dollars(credit.Amount(value))
		}
	case []any:
		if len(value) == 0 {
			return "none"
		}
		return clipValue(listText(value))
	}
	return clipValue(string(raw))
}

// listText joins the values of a list. It shows an object as its values, ordered by name.
func listText(list []any) string {
	var texts []string
	for _, one := range list {
		switch one := one.(type) {
		case string:
			texts = append(texts, one)
		case map[string]any:
			var parts []string
			for _, key := range slices.Sorted(maps.Keys(one)) {
				if text, ok := one[key].(string); ok {
					parts = append(parts, text)
				}
			}
			texts = append(texts, strings.Join(parts, ": "))
		}
	}
	return strings.Join(texts, ", ")
}

func clipValue(text string) string {
	text = oneLine(text)
	if chars := []rune(text); len(chars) > maxShownValue {
		return string(chars[:maxShownValue]) + "…"
	}
	return text
}
