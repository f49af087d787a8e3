package storage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

const carts = "carts.example.com"

// shop is an API server with one CRD.
type shop struct {
	crd *apiextensionsv1.CustomResourceDefinition
	// stored has the version in which each object is stored.
	stored map[string]string
	// before is called with each request, and may fail it.
	before   func(request string) error
	requests []string
	clock    hasty
}

// newShop has objects that are stored in the older version.
func newShop(objects ...string) *shop {
	s := &shop{crd: &apiextensionsv1.CustomResourceDefinition{}, stored: map[string]string{}}
	s.crd.Name, s.crd.UID, s.crd.Generation, s.crd.ResourceVersion = carts, "uid", 1, "1"
	s.crd.Spec.Group, s.crd.Spec.Names.Plural = "example.com", "carts"
	s.crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v2"}}
	s.store("v1")
	s.store("v2")
	for _, name := range objects {
		s.stored[name] = "v1"
	}
	return s
}

// store changes the storage version.
func (s *shop) store(version string) {
	for i := range s.crd.Spec.Versions {
		s.crd.Spec.Versions[i].Storage = s.crd.Spec.Versions[i].Name == version
	}
	if !slices.Contains(s.crd.Status.StoredVersions, version) {
		s.crd.Status.StoredVersions = append(s.crd.Status.StoredVersions, version)
	}
	s.changed()
}

// changed is a write of the spec.
func (s *shop) changed() {
	s.crd.Generation++
	n, _ := strconv.Atoi(s.crd.ResourceVersion)
	s.crd.ResourceVersion = strconv.Itoa(n + 1)
}

func (s *shop) storageVersion() string {
	for _, v := range s.crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

func (s *shop) request(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	s.requests = append(s.requests, text)
	if s.before == nil {
		return nil
	}
	return s.before(text)
}

func (s *shop) definition(_ context.Context, name string) (*definition, error) {
	if err := s.request("get %s", name); err != nil {
		return nil, err
	}
	if name != s.crd.Name {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
	}
	return s.crd.DeepCopy(), nil
}

func (s *shop) prune(_ context.Context, name string, data []byte) error {
	if err := s.request("prune %s", name); err != nil {
		return err
	}
	var patch apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(data, &patch); err != nil {
		return err
	}
	if patch.ResourceVersion != s.crd.ResourceVersion || patch.UID != s.crd.UID {
		return apierrors.NewConflict(schema.GroupResource{}, name, nil)
	}
	s.crd.Status.StoredVersions = patch.Status.StoredVersions
	s.crd.ResourceVersion += "0"
	return nil
}

func (s *shop) list(_ context.Context, p Plan, limit int64, token string) (*objects, error) {
	if err := s.request("%s", strings.TrimSpace("list "+p.Resource.Version+" "+token)); err != nil {
		return nil, err
	}
	page := &objects{}
	names := slices.Sorted(maps.Keys(s.stored))
	names = slices.DeleteFunc(names, func(name string) bool { return name <= token })
	for i, name := range names {
		if int64(i) == limit {
			page.Continue, page.RemainingItemCount = names[i-1], ptr.To(int64(len(names)-i))
			break
		}
		item := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		page.Items = append(page.Items, item)
	}
	return page, nil
}

func (s *shop) rewrite(_ context.Context, _ Plan, object types.NamespacedName) error {
	if err := s.request("rewrite %s", object); err != nil {
		return err
	}
	if s.stored[object.Name] == "" {
		return apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "carts"}, object.Name)
	}
	s.stored[object.Name] = s.storageVersion()
	return nil
}

// hasty is a clock that waits for nothing.
type hasty struct {
	clock.RealClock

	waited []time.Duration
}

// NewTimer returns one that has fired.
func (h *hasty) NewTimer(d time.Duration) clock.Timer {
	h.waited = append(h.waited, d)
	return h.RealClock.NewTimer(0)
}

// migrateShop migrates to v2, with pages of two objects.
func (s *shop) migrateShop(ctx context.Context, o Options) (Result, []time.Duration) {
	s.clock.waited = nil
	o.PageSize, o.Clock = cmp.Or(o.PageSize, 2), &s.clock
	m := &migrator{server: s, options: o.withDefaults()}
	results, err := m.migrate(ctx, []Target{{CRD: carts, Version: "v2"}})
	if err != nil {
		results[0].Err = err
	}
	return results[0], s.clock.waited
}
