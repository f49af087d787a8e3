package workloadspread

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// kindsPeriod is how often the list of further kinds is read, where a WorkloadSpread needs the list.
const kindsPeriod = 30 * time.Second

// Allowed are the kinds that an installation allows besides subset.Targets.
type Allowed struct {
	// Targets are what WorkloadSpreads may refer to.
	Targets []schema.GroupKind
	// Owners are the targets, and the kinds between a target and its pods.
	Owners []schema.GroupKind
	// Paths of the replicas of targets without a scale.
	Paths map[schema.GroupKind]string
}

// Kinds reads the list of further kinds in the ConfigMap kruise-configuration, live and only when asked. It is safe for
// concurrent use.
type Kinds struct {
	// Live reads the ConfigMap. Nil allows no further kind.
	Live client.Reader
	// Namespace of the manager; empty for kruise-system.
	Namespace string
	// Now is the clock.
	Now func() time.Time

	mu    sync.Mutex
	until time.Time
	last  Allowed
}

// Read returns the list. What cannot be read, or is no list, leaves the last list in force.
func (k *Kinds) Read(ctx context.Context) Allowed {
	if k == nil || k.Live == nil {
		return Allowed{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.Now()
	if now.Before(k.until) {
		return k.last
	}
	k.until = now.Add(kindsPeriod)
	namespace := k.Namespace
	if namespace == "" {
		namespace = kruise.DefaultNamespace
	}
	config := &corev1.ConfigMap{}
	err := k.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: kruise.ConfigurationName}, config)
	if apierrors.IsNotFound(err) {
		err = nil
	}
	var next Allowed
	if err == nil {
		next, err = parseKinds(config.Data[kruise.WorkloadSpreadWhiteListKey])
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to read which further kinds WorkloadSpreads may refer to",
			"configMap", namespace+"/"+kruise.ConfigurationName, "key", kruise.WorkloadSpreadWhiteListKey)
		return k.last
	}
	k.last = next
	return next
}

// parseKinds reads the list. Text without content is an empty list.
func parseKinds(text string) (Allowed, error) {
	var list struct {
		Workloads []struct {
			Group        string             `json:"Group"`
			Kind         string             `json:"Kind"`
			SubResources []schema.GroupKind `json:"subResources"`
			ReplicasPath string             `json:"replicasPath"`
		} `json:"workloads"`
	}
	all := Allowed{Paths: map[schema.GroupKind]string{}}
	if text == "" {
		return all, nil
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return Allowed{}, fmt.Errorf("decode the list of kinds: %w", err)
	}
	for _, w := range list.Workloads {
		target := schema.GroupKind{Group: w.Group, Kind: w.Kind}
		all.Targets = append(all.Targets, target)
		all.Owners = append(all.Owners, target)
		all.Owners = append(all.Owners, w.SubResources...)
		if w.ReplicasPath != "" {
			all.Paths[target] = w.ReplicasPath
		}
	}
	return all, nil
}

// BuiltIn reports whether every WorkloadSpread may have a target of a kind.
func BuiltIn(kind schema.GroupKind) bool { return slices.Contains(subset.Targets(), kind) }
