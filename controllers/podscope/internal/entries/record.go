package entries

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// recordKey is the annotation of the configuration that has what was written last, by the names of entries.
const recordKey = "kruisekit.dev/pod-scope"

type record map[string]recorded

// recorded is what was written into an entry.
type recorded struct {
	// Base and Conditions are hashes: of the rules and the client configuration, and of our match conditions.
	Base       string `json:"base"`
	Conditions string `json:"conditions"`
	// Namespaces are the requirements on the labels of namespaces.
	Namespaces []requirement `json:"namespaces,omitempty"`
}

// readRecord returns the record of a configuration; false if there is none. One that cannot be read counts as empty.
func readRecord(c *configuration) (record, bool) {
	if c == nil {
		return nil, false
	}
	text, known := c.Annotations[recordKey]
	r := record{}
	if json.Unmarshal([]byte(text), &r) != nil {
		return nil, known
	}
	return r, known
}

// recordOf returns what is recorded of an entry.
func recordOf(e *entry) (recorded, error) {
	client := e.ClientConfig
	if client.Service != nil {
		client.CABundle = nil // package certificates replaces it
	}
	base, err := hash([]any{e.Rules, client})
	if err != nil {
		return recorded{}, err
	}
	r := recorded{Base: base}
	if e.NamespaceSelector != nil {
		r.Namespaces = e.NamespaceSelector.MatchExpressions
	}
	r.Conditions, err = hash(ours(e.MatchConditions))
	return r, err
}

// edits returns the parts of a live entry that another writer has changed since they were recorded.
func (r recorded) edits(live *entry) ([]string, error) {
	now, err := recordOf(live)
	if err != nil {
		return nil, err
	}
	var all []string
	if now.Base != r.Base {
		all = append(all, live.Name+": rules or client configuration")
	}
	if now.Conditions != r.Conditions {
		all = append(all, live.Name+": match conditions")
	}
	for _, one := range r.Namespaces {
		if !contains(now.Namespaces, one) {
			all = append(all, live.Name+": namespace selector")
			break
		}
	}
	return all, nil
}

func hash(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode entry: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6]), nil
}
