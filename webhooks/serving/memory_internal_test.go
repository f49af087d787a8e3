package serving

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
)

// The estimate for a body is at least what its decoded form holds, whichever value it repeats.
func TestDecoded(t *testing.T) {
	cases := map[string]struct{ before, each, after string }{
		"containers": {`{"spec":{"containers":[`, `{}`, `]}}`},
		"probes":     {`{"spec":{"containers":[`, `{"livenessProbe":{"httpGet":{}}}`, `]}}`},
		"fields":     {`{"a":{`, `"%d":{}`, `}}`},
		"metadata":   {`{"metadata":{"labels":{"a":"b"},"managedFields":[{"fieldsV1":{`, `"f:%d":{}`, `}}]}}`},
		"sources": {
			`{"spec":{"volumes":[`, `{"azureDisk":{},"csi":{},"ephemeral":{},"projected":{},"iscsi":{},"rbd":{}}`, `]}}`,
		},
		"objects":   {`{"a":[`, `{"":0}`, `]}`},
		"nested":    {`{"a":[`, `{"a":{}}`, `]}`},
		"lists":     {`{"a":[`, `[]`, `]}`},
		"texts":     {`{"a":[`, `""`, `]}`},
		"arguments": {`{"spec":{"containers":[{"args":[`, `""`, `]}]}}`},
	}
	for name, c := range cases {
		for form, into := range map[string]func() any{
			"a pod": func() any { return &corev1.Pod{} }, "a map": func() any { return &map[string]any{} },
		} {
			t.Run(name+" in "+form, func(t *testing.T) {
				var repeated []string
				for i := range 10_000 {
					repeated = append(repeated, strings.ReplaceAll(c.each, "%d", strconv.Itoa(i)))
				}
				body := []byte(c.before + strings.Join(repeated, ",") + c.after)
				object := into()
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				if err := json.Unmarshal(body, object); err != nil {
					t.Fatal(err)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > decoded(body) {
					t.Errorf("%d bytes in memory from %d, more than the estimate %d", held, len(body), decoded(body))
				}
				runtime.KeepAlive(object)
				runtime.KeepAlive(body)
			})
		}
	}
}

// A list of 500 CloneSets, as kubectl asks for it in an older version, is one review. It fits where the memory is that
// of config/manager.
func TestListOfCloneSets(t *testing.T) {
	fields := strings.Repeat(`"f:field":{},`, 80)
	container := `{"name":"main","image":"nginx:1","ports":[{"containerPort":80}],` +
		`"env":[{"name":"A","value":"1"},{"name":"B","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}}],` +
		`"resources":{"limits":{"cpu":"1"},"requests":{"cpu":"1"}},"readinessProbe":{"httpGet":{"path":"/"}}}`
	object := `{"metadata":{"name":"web","managedFields":[{"fieldsV1":{` + fields + `"f:a":{}}},{"fieldsV1":{}}]},` +
		`"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},` +
		`"spec":{"containers":[` + container + `,` + container + `],"volumes":[{"emptyDir":{}},{"configMap":{}}]}}},` +
		`"status":{"conditions":[{"type":"A"},{"type":"B"}]}}`
	list := []byte(`{"request":{"objects":[` + strings.Repeat(object+",", 499) + object + `]}}`)
	if !json.Valid(list) {
		t.Fatal("the list is no JSON")
	}
	m := newMemory(225<<20, prometheus.NewGauge(prometheus.GaugeOpts{}))
	if takes := decoded(list); takes > m.largest {
		t.Errorf("a list of %d KiB takes %d MiB, and a review may take %d", len(list)>>10, takes>>20, m.largest>>20)
	}
}

// Requests of any size hold at most the memory at any moment. Each of them ends: none waits for one that waits.
func TestMemory(t *testing.T) {
	const limit = 1 << 20
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			used := &peak{}
			m := newMemory(limit, used)
			var ran atomic.Int64
			var all sync.WaitGroup
			for i := range uint64(64) {
				all.Add(1)
				go func() {
					defer all.Done()

					random := rand.New(rand.NewPCG(seed, i))
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if random.IntN(8) == 0 {
						cancel() // its client gave up
					}
					s := &share{of: m}
					defer s.release()
					for range random.IntN(6) {
						if !s.grow(1 + random.Int64N(limit/8)) {
							return
						}
						runtime.Gosched()
					}
					if s.run(ctx, 1+random.Int64N(m.largest)) == nil {
						ran.Add(1)
						runtime.Gosched()
					}
				}()
			}
			all.Wait()
			if used.most > limit || used.now != 0 || ran.Load() == 0 {
				t.Errorf("at most %.0f bytes were held of %d, %.0f afterwards; %d ran", used.most, limit, used.now, ran.Load())
			}
			if !m.bodies.TryAcquire(limit/4) || !m.work.TryAcquire(m.largest) {
				t.Error("memory is lost")
			}
		})
	}
}

// peak is a gauge that keeps its largest value.
type peak struct {
	prometheus.Gauge

	mu        sync.Mutex
	now, most float64
}

func (p *peak) Add(n float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now += n
	p.most = max(p.most, p.now)
}

func (p *peak) Sub(n float64) { p.Add(-n) }
