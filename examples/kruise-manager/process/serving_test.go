package process

import (
	"testing"

	"github.com/kruisekit/kruisekit/webhooks/serving"
)

// The webhooks get a quarter of the memory of the process, and a server accepts each such limit.
func TestWebhookMemory(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		why         string
		limit, want int64
	}{
		"none":              {"the default of the server holds", 0, 0},
		"config/manager":    {"900 MiB", 900 * mib, 225 * mib},
		"a small process":   {"the largest objects need so much", 64 * mib, 96 * mib},
		"a large cluster":   {"the caches grow, and webhooks with them", 3 << 30, 768 * mib},
		"very much":         {"requests are bounded, too", 1 << 40, 1 << 30},
		"an absurd setting": {"the default of the server holds", -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := webhookMemory(c.limit)
			if got != c.want {
				t.Errorf("%s: %d MiB, want %d", c.why, got/mib, c.want/mib)
			}
			if _, err := serving.New(serving.Options{Limits: serving.Limits{Memory: got}}); err != nil {
				t.Error(err)
			}
		})
	}
}
