package sidecar

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// record writes annotations about the sets that the pod got.
func (in *injector) record(sets []*Set) error {
	for _, r := range []struct {
		key      string
		hash     func(*Set) string
		revision bool
	}{
		{kruise.SidecarSetHashKey, func(s *Set) string { return s.hash }, true},
		{kruise.SidecarSetHashWithoutImageKey, func(s *Set) string { return s.bare }, false},
	} {
		entries, err := ReadInjected(in.pod.Annotations[r.key])
		if err != nil {
			return fmt.Errorf("read annotation %s: %w", r.key, err)
		}
		for _, set := range sets {
			entry := kruise.SidecarSetInjected{
				UpdateTimestamp: metav1.NewTime(in.o.Now),
				Hash:            r.hash(set),
				SidecarSetName:  set.Name(),
				SidecarList:     set.sidecars,
			}
			if r.revision {
				entry.ControllerRevision = set.object.Status.LatestRevision
			}
			if was, ok := entries[set.Name()]; ok && sameInjected(was, entry) {
				entry.UpdateTimestamp = was.UpdateTimestamp
			}
			entries[set.Name()] = entry
		}
		if err := in.annotateJSON(r.key, entries); err != nil {
			return err
		}
	}
	names := strings.Split(in.pod.Annotations[kruise.SidecarSetInjectedListKey], ",")
	for _, set := range sets {
		names = append(names, set.Name())
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
	annotate(&in.pod.ObjectMeta, kruise.SidecarSetInjectedListKey, strings.Join(names, ","))
	return nil
}

// recordWorking records the working container of each hot upgrade. Entries of other sets stay.
func (in *injector) recordWorking() error {
	if len(in.working) == 0 {
		return nil
	}
	const key = kruise.SidecarSetWorkingHotUpgradeContainerKey
	working := map[string]string{}
	if text := in.pod.Annotations[key]; text != "" {
		if err := json.Unmarshal([]byte(text), &working); err != nil {
			return fmt.Errorf("read annotation %s: %w", key, err)
		}
	}
	if working == nil { // the annotation was null
		working = map[string]string{}
	}
	maps.Copy(working, in.working)
	return in.annotateJSON(key, working)
}

func (in *injector) annotateJSON(key string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode annotation %s: %w", key, err)
	}
	annotate(&in.pod.ObjectMeta, key, string(data))
	return nil
}

// ReadInjected returns what a pod records of each set, by the name of the set, from the annotation
// kruise.SidecarSetHashKey or kruise.SidecarSetHashWithoutImageKey. An entry of an old release is just the hash.
func ReadInjected(text string) (map[string]kruise.SidecarSetInjected, error) {
	entries := map[string]kruise.SidecarSetInjected{}
	if text == "" {
		return entries, nil
	}
	raw := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, err
	}
	for name, data := range raw {
		entry := kruise.SidecarSetInjected{}
		if json.Unmarshal(data, &entry.Hash) == nil {
			entry.SidecarSetName = name
		} else if err := json.Unmarshal(data, &entry); err != nil {
			return nil, fmt.Errorf("entry %s: %w", name, err)
		}
		entries[name] = entry
	}
	return entries, nil
}

// sameInjected reports whether two records differ only by their time.
func sameInjected(a, b kruise.SidecarSetInjected) bool {
	return a.Hash == b.Hash && a.SidecarSetName == b.SidecarSetName && a.ControllerRevision == b.ControllerRevision &&
		slices.Equal(a.SidecarList, b.SidecarList) && !a.UpdateTimestamp.IsZero()
}

// Names returns the names of the containers that keep running in a pod, sorted, as pods record them.
func Names(set *appsv1beta1.SidecarSet) []string {
	names := []string{}
	for i := range set.Spec.InitContainers {
		if c := &set.Spec.InitContainers[i]; isNative(*c) {
			names = append(names, c.Name)
		}
	}
	for i := range set.Spec.Containers {
		names = append(names, set.Spec.Containers[i].Name)
	}
	slices.Sort(names)
	return names
}
