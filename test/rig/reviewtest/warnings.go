package reviewtest

import (
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// heard are the warnings that an API server sends.
type heard struct {
	mu   sync.Mutex
	said []string
}

// HandleWarningHeader takes one in.
func (h *heard) HandleWarningHeader(_ int, _, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, text)
}

// Warnings creates an object in a dry run, and gives what the API server warns of.
func (g *Ground) Warnings(t *testing.T, obj client.Object) ([]string, error) {
	t.Helper()
	h := &heard{}
	config := rest.CopyConfig(g.Config)
	config.WarningHandler = h
	c, err := client.New(config, client.Options{Scheme: g.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Create(t.Context(), obj, client.DryRunAll)
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said, err
}
