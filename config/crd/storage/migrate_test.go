package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A migration costs two reads and a patch of the CRD, a list in pages, and a patch of each object.
func TestMigrate(t *testing.T) {
	s := newShop("a", "b", "c")
	r, waited := s.migrateShop(t.Context(), Options{})
	if !r.Done() || !r.Pruned || r.Objects != 3 {
		t.Errorf("the result is %+v", r)
	}
	want := []string{
		"get carts.example.com", "list v2", "rewrite shop/a", "rewrite shop/b", "list v2 b", "rewrite shop/c",
		"get carts.example.com", "prune carts.example.com",
	}
	if diff := cmp.Diff(want, s.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{settle}, waited); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"v2"}, s.crd.Status.StoredVersions); diff != "" {
		t.Errorf("stored versions (-want +got):\n%s", diff)
	}
	s.requests = nil
	again, waited := s.migrateShop(t.Context(), Options{})
	if !again.Done() || again.Pruned || len(waited) > 0 {
		t.Errorf("the second migration waited %v and returned %+v", waited, again)
	}
	if diff := cmp.Diff([]string{"get carts.example.com"}, s.requests); diff != "" {
		t.Errorf("requests of the second migration (-want +got):\n%s", diff)
	}
}

// fault fails the first requests that begin with a text.
func fault(prefix string, times int, err error) func(string) error {
	return func(request string) error {
		if times == 0 || !strings.HasPrefix(request, prefix) {
			return nil
		}
		times--
		return err
	}
}

// expired is the answer to a token that has expired.
func expired(token string) error {
	err := apierrors.NewResourceExpired("the token has expired")
	err.ErrStatus.Continue = token
	return err
}

func TestMigrateFaults(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "carts"}, "b", errors.New("a policy"))
	silent := apierrors.NewInternalError(errors.New("conversion webhook failed"))
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict,
		Message: `admission webhook "x" denied the request`,
	}}
	for name, row := range map[string]struct {
		before func(s *shop) func(string) error
		want   Result // but for the target, what was stored, and the errors of failures
		waits  int    // pauses for requests that were not answered
		left   string
	}{
		"an object is refused": {
			before: func(*shop) func(string) error { return fault("rewrite shop/b", 9, refused) },
			want:   Result{Objects: 2, Failed: 1},
			left:   "rewrite carts.example.com shop/b",
		},
		"a webhook denies with a conflict": {
			before: func(*shop) func(string) error { return fault("rewrite shop/b", 9, denied) },
			want:   Result{Objects: 2, Failed: 1},
			left:   "admission webhook",
		},
		"an object is deleted meanwhile": {
			before: func(s *shop) func(string) error {
				return func(request string) error {
					if request == "rewrite shop/b" {
						delete(s.stored, "b")
					}
					return nil
				}
			},
			want: Result{Objects: 3, Pruned: true},
		},
		"other writers are faster": {
			before: func(*shop) func(string) error {
				return fault("rewrite shop/b", 1, apierrors.NewConflict(schema.GroupResource{}, "b", nil))
			},
			want: Result{Objects: 3, Pruned: true},
		},
		"an object is not answered at first": {
			before: func(*shop) func(string) error { return fault("rewrite shop/b", 2, silent) },
			want:   Result{Objects: 3, Pruned: true},
			waits:  2,
		},
		"an object is never answered": {
			before: func(*shop) func(string) error { return fault("rewrite shop/b", 99, silent) },
			want:   Result{Objects: 2, Failed: 1},
			waits:  3,
			left:   "rewrite carts.example.com shop/b: Internal error occurred: conversion webhook failed",
		},
		"the kind cannot be listed": {
			before: func(*shop) func(string) error { return fault("list", 99, silent) },
			waits:  3,
			left:   "migrate carts.example.com: Internal error occurred: conversion webhook failed",
		},
		"the list expires": {
			before: func(*shop) func(string) error { return fault("list v2 b", 1, expired("b")) },
			want:   Result{Objects: 3, Pruned: true},
		},
		"the list expires for good": {
			before: func(*shop) func(string) error { return fault("list v2 b", 1, expired("")) },
			want:   Result{Objects: 2},
			left:   "the token has expired",
		},
		"the CRD changes meanwhile": {
			before: func(s *shop) func(string) error {
				return func(request string) error {
					if strings.HasPrefix(request, "rewrite shop/c") && s.crd.Generation == 3 {
						s.changed()
					}
					return nil
				}
			},
			want: Result{Objects: 3},
			left: "the CRD has changed meanwhile",
		},
		"the CRD changes before the removal": {
			before: func(s *shop) func(string) error {
				return func(request string) error {
					if strings.HasPrefix(request, "prune") && s.crd.Generation == 3 {
						s.changed()
					}
					return nil
				}
			},
			want: Result{Objects: 3},
			left: "migrate carts.example.com: Operation cannot be fulfilled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop("a", "b", "c")
			s.before = row.before(s)
			r, waited := s.migrateShop(t.Context(), Options{})
			if r.Objects != row.want.Objects || r.Failed != row.want.Failed || r.Pruned != row.want.Pruned {
				t.Errorf("the result is %+v, want %+v", r, row.want)
			}
			checkLeft(t, r, row.left)
			if waited[0] != settle || len(waited) != row.waits+1 {
				t.Errorf("pauses are %v", waited)
			}
			if pruned := len(s.crd.Status.StoredVersions) == 1; pruned != row.want.Pruned {
				t.Errorf("stored versions are %v", s.crd.Status.StoredVersions)
			}
		})
	}
}

// checkLeft compares what a result reports as left with a part of the text, or with nothing.
func checkLeft(t *testing.T, r Result, want string) {
	t.Helper()
	err := Err([]Result{r})
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("what is left is %v, want %q", err, want)
	}
}

// A migration reports its wait, each page of objects, and its end.
func TestMigrateReports(t *testing.T) {
	var got []string
	newShop("a", "b", "c").migrateShop(t.Context(), Options{Report: func(p Progress) {
		got = append(got, fmt.Sprintf("%s: wait %s, %d of %d, %t", p.CRD, p.Wait, p.Objects, p.Total, p.Pruned))
	}})
	want := []string{
		"carts.example.com: wait 1m30s, 0 of 0, false", "carts.example.com: wait 0s, 2 of 3, false",
		"carts.example.com: wait 0s, 3 of 3, false", "carts.example.com: wait 0s, 3 of 3, true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

// Without writes: what needs none, and what must have none.
func TestMigrateWritesNothing(t *testing.T) {
	for name, row := range map[string]struct {
		prepare  func(s *shop)
		options  Options
		objects  int
		left     string
		requests []string
	}{
		"a dry run counts": {
			prepare:  func(*shop) {},
			options:  Options{DryRun: true},
			objects:  3,
			requests: []string{"get carts.example.com", "list v2"},
		},
		"a dry run of no objects": {
			prepare:  func(s *shop) { clear(s.stored) },
			options:  Options{DryRun: true},
			requests: []string{"get carts.example.com", "list v2"},
		},
		"the CRD is not installed": {
			prepare:  func(s *shop) { s.crd.Name = "other" },
			requests: []string{"get carts.example.com"},
		},
		"another storage version": {
			prepare:  func(s *shop) { s.store("v1") },
			left:     "the storage version is v1, want v2: apply the CRD first",
			requests: []string{"get carts.example.com"},
		},
		"the CRD cannot be read": {
			prepare: func(s *shop) {
				s.before = fault("get", 9, apierrors.NewForbidden(schema.GroupResource{}, carts, errors.New("no right")))
			},
			left:     "no right",
			requests: []string{"get carts.example.com"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop("a", "b", "c")
			row.prepare(s)
			r, waited := s.migrateShop(t.Context(), row.options)
			if r.Objects != row.objects || r.Pruned || len(waited) > 0 {
				t.Errorf("the result is %+v after pauses %v", r, waited)
			}
			checkLeft(t, r, row.left)
			if diff := cmp.Diff(row.requests, s.requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// A kind of which nothing is answered ends after a bounded number of objects, and names a bounded number of refused
// ones.
func TestMigrateBounds(t *testing.T) {
	var names []string
	for i := range 300 {
		names = append(names, fmt.Sprintf("cart-%03d", i))
	}
	s := newShop(names...)
	s.before = fault("rewrite", -1, apierrors.NewInternalError(errors.New("conversion webhook failed")))
	r, _ := s.migrateShop(t.Context(), Options{PageSize: 100})
	if r.Failed != unanswered || r.Err == nil {
		t.Errorf("%d objects failed, then %v", r.Failed, r.Err)
	}
	s.before = fault("rewrite", -1, apierrors.NewForbidden(schema.GroupResource{}, "cart", errors.New("no right")))
	r, _ = s.migrateShop(t.Context(), Options{PageSize: 100})
	if r.Failed != 300 || len(r.Failures) != named || r.Err != nil {
		t.Errorf("%d of %d objects are named, then %v", len(r.Failures), r.Failed, r.Err)
	}
	checkLeft(t, r, "rewrite 200 more objects of carts.example.com")
}

func TestMigrateInterrupted(t *testing.T) {
	s := newShop("a", "b", "c")
	ctx, cancel := context.WithCancel(t.Context())
	s.before = func(request string) error {
		if request == "rewrite shop/b" {
			cancel()
			return ctx.Err()
		}
		return nil
	}
	if r, _ := s.migrateShop(ctx, Options{}); !errors.Is(r.Err, context.Canceled) || r.Pruned || r.Failed != 0 {
		t.Errorf("the result is %+v", r)
	}
	s.before = nil
	if r, _ := s.migrateShop(t.Context(), Options{}); !r.Pruned || r.Objects != 3 {
		t.Errorf("the result of the second run is %+v", r)
	}
}

// Whatever happens between two requests, a CRD without older versions has no object that is stored in one. Other
// writers create, change and delete objects, the CRD changes, and the storage version changes back and forth.
func TestPrunedIsRewritten(t *testing.T) {
	pruned := 0
	for seed := range uint64(2000) {
		draw := rand.New(rand.NewPCG(seed, 1))
		s := newShop("b", "d", "f", "h")
		rate := draw.IntN(6)
		s.before = func(request string) error {
			if draw.IntN(10) < rate {
				meanwhile(s, draw)
			}
			switch draw.IntN(20) {
			case 0:
				return apierrors.NewInternalError(errors.New("no answer"))
			case 1:
				if _, token, ok := strings.Cut(request, "list v2 "); ok {
					return expired(token)
				}
			}
			return nil
		}
		r, _ := s.migrateShop(t.Context(), Options{})
		if !slices.Equal(s.crd.Status.StoredVersions, []string{"v2"}) {
			continue
		}
		pruned++
		for name, version := range s.stored {
			if version != "v2" {
				t.Fatalf("seed %d: %s is stored in %s; %+v, requests %v", seed, name, version, r, s.requests)
			}
		}
	}
	if pruned < 500 {
		t.Errorf("only %d CRDs were pruned", pruned)
	}
}

// meanwhile is what others do between two requests.
func meanwhile(s *shop, draw *rand.Rand) {
	name := string(rune('a' + draw.IntN(8)))
	switch draw.IntN(16) {
	case 0:
		s.changed()
	case 1:
		s.store([]string{"v1", "v2"}[draw.IntN(2)])
	case 2, 3, 4:
		delete(s.stored, name)
	default:
		s.stored[name] = s.storageVersion()
	}
}

func TestDecide(t *testing.T) {
	s := newShop()
	p, err := Decide(s.crd, "v2")
	if err != nil || !p.Needed() || len(p.Subresources) > 0 {
		t.Errorf("the plan is %+v, %v", p, err)
	}
	status := &apiextensionsv1.CustomResourceSubresourceStatus{}
	s.crd.Spec.Versions[1].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: status}
	if p, _ = Decide(s.crd, "v2"); !slices.Equal(p.Subresources, []string{"status"}) {
		t.Errorf("the subresources are %v", p.Subresources)
	}
	other := s.crd.DeepCopy()
	other.UID = "other"
	if _, err := p.Prune(other); !errors.Is(err, ErrChanged) {
		t.Errorf("a CRD that was created again: %v", err)
	}
	s.store("v1")
	var unfit *VersionError
	if _, err := Decide(s.crd, "v2"); !errors.As(err, &unfit) || unfit.Have != "v1" {
		t.Errorf("the storage version is another one: %v", err)
	}
}
