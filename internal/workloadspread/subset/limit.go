package subset

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
)

type (
	// Spread is the kind that this package decides about.
	Spread = appsv1beta1.WorkloadSpread
	// Subset is one of its subsets.
	Subset = appsv1beta1.WorkloadSpreadSubset
	// Entry is the status of a subset.
	Entry = appsv1beta1.WorkloadSpreadSubsetStatus
)

const (
	// Unlimited is the limit of a subset that takes any number of pods.
	Unlimited int32 = -1
	// Unresolved is the limit of a subset that is not known. Such a subset takes no pods.
	Unresolved int32 = -2
)

// The codes of notes.
const (
	// NoteUnreadable is a maxReplicas that is neither a number nor a percentage.
	NoteUnreadable = "UnreadableMaxReplicas"
	// NoteUnknownReplicas is a maxReplicas in percent of unknown replicas.
	NoteUnknownReplicas = "UnknownReplicas"
	// NoteNotCreated is a pod that was admitted, and that no event has reported since.
	NoteNotCreated = "CreatePodFailed"
	// NoteNotDeleted is a pod that is still active although its deletion was admitted.
	NoteNotDeleted = "DeletePodFailed"
	// NoteRecovered is a subset that takes pods again.
	NoteRecovered = "RecoverSchedulable"
)

// Base is the replicas of the target that percentages refer to.
type Base struct {
	Replicas int32
	// Unknown replicas resolve no percentage.
	Unknown bool
}

// NeedsBase reports whether a limit is a percentage.
func NeedsBase(subsets []Subset) bool {
	for i := range subsets {
		if m := subsets[i].MaxReplicas; m != nil && m.Type == intstr.String {
			return true
		}
	}
	return false
}

// Limits returns how many pods each subset takes: a number, Unlimited or Unresolved. Percentages are rounded up.
func Limits(subsets []Subset, base Base) ([]int32, []note.Note) {
	limits := make([]int32, len(subsets))
	var notes []note.Note
	for i := range subsets {
		limit, n := limitOf(&subsets[i], base)
		limits[i] = limit
		if n != nil {
			notes = append(notes, *n)
		}
	}
	return limits, notes
}

func limitOf(s *Subset, base Base) (int32, *note.Note) {
	if s.MaxReplicas == nil {
		return Unlimited, nil
	}
	if _, err := scale.Amount(*s.MaxReplicas, 0, scale.RoundUp); err != nil {
		return Unresolved, &note.Note{
			Level:  note.Blocked,
			Code:   NoteUnreadable,
			Object: s.Name,
			Text:   fmt.Sprintf("maxReplicas of subset %s takes no pods: %v", s.Name, err),
		}
	}
	if base.Unknown && s.MaxReplicas.Type == intstr.String {
		return Unresolved, &note.Note{
			Level: note.Blocked, Code: NoteUnknownReplicas, Object: s.Name,
			Text: fmt.Sprintf("maxReplicas %s of subset %s takes no pods, because the replicas of the target are unknown: "+
				"use a number, or targetFilter.replicasPathList", s.MaxReplicas.StrVal, s.Name),
		}
	}
	limit, _ := scale.Amount(*s.MaxReplicas, max(base.Replicas, 0), scale.RoundUp)
	return max(limit, 0), nil
}

// Missing returns how many places a subset has: Unlimited, or at least 0.
func Missing(limit int32, active, deleting, creating int) int32 {
	switch limit {
	case Unlimited:
		return Unlimited
	case Unresolved:
		return 0
	}
	return int32(min(max(0, int64(limit)-(int64(active)-int64(deleting)+int64(creating))), math.MaxInt32))
}

// MaxPaths is how many paths ReplicasAt sums.
const MaxPaths = 100

// ReplicasAt returns the sum of the integers at paths of an object: names, and indices of lists, joined by dots. An
// empty path counts 0.
func ReplicasAt(object map[string]any, paths []string) (int32, error) {
	if len(paths) > MaxPaths {
		return 0, fmt.Errorf("replicasPathList must have at most %d paths", MaxPaths)
	}
	sum := int64(0)
	for _, path := range paths {
		if path == "" {
			continue
		}
		n, err := integerAt(object, strings.Split(path, "."))
		if err != nil {
			return 0, fmt.Errorf("read replicas at %q: %w", path, err)
		}
		sum += n
	}
	if sum < 0 || sum > math.MaxInt32 {
		return 0, fmt.Errorf("the sum of the replicas must be a 32-bit number, is %d", sum)
	}
	return int32(sum), nil
}

func integerAt(at any, keys []string) (int64, error) {
	for _, key := range keys {
		switch is := at.(type) {
		case map[string]any:
			next, ok := is[key]
			if !ok {
				return 0, fmt.Errorf("there is no field %q", key)
			}
			at = next
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(is) {
				return 0, fmt.Errorf("%q is no index of a list of %d", key, len(is))
			}
			at = is[i]
		default:
			return 0, fmt.Errorf("%q is below a value that has no fields", key)
		}
	}
	switch n := at.(type) {
	case int64:
		if n > math.MaxInt32 || n < math.MinInt32 {
			return 0, errors.New("the integer does not fit into 32 bits")
		}
		return n, nil
	case float64:
		if whole := int64(n); float64(whole) == n && n <= math.MaxInt32 && n >= math.MinInt32 {
			return whole, nil
		}
	}
	return 0, errors.New("the value is no integer")
}
