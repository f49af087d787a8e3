package spread_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/spread"
)

// subset reads one from words: its name, and what else is known: "a =4 min1 max2 has3 ready2 reserved1 down marked".
func subset(t testing.TB, text string) spread.Subset {
	t.Helper()
	words := strings.Fields(text)
	s := spread.Subset{Name: words[0]}
	for _, word := range words[1:] {
		switch {
		case word == "down":
			s.Unschedulable = true
		case word == "marked":
			s.Marked = true
		case strings.HasPrefix(word, "="):
			s.Replicas = amount(word[1:])
		case strings.HasPrefix(word, "min"):
			s.MinReplicas = amount(word[3:])
		case strings.HasPrefix(word, "max"):
			s.MaxReplicas = amount(word[3:])
		default:
			for prefix, into := range map[string]*int32{"has": &s.Current, "ready": &s.Ready, "reserved": &s.Reserved} {
				if digits, is := strings.CutPrefix(word, prefix); is {
					s.Exists = true
					if _, err := fmt.Sscan(digits, into); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	return s
}

func amount(text string) *intstr.IntOrString { return ptr.To(intstr.Parse(text)) }

// input reads subsets that commas separate.
func input(t testing.TB, mode spread.Mode, total int32, subsets string) spread.Input {
	t.Helper()
	in := spread.Input{Mode: mode}
	if total >= 0 {
		in.Replicas = &total
	}
	for text := range strings.SplitSeq(subsets, ",") {
		in.Subsets = append(in.Subsets, subset(t, text))
	}
	return in
}

func codes(notes []note.Note) string {
	var all []string
	for _, n := range notes {
		all = append(all, n.Code)
	}
	return strings.Join(all, " ")
}

type allocated struct {
	why     string
	mode    spread.Mode
	total   int32
	subsets string
	want    []int32
	notes   string
}

func (c allocated) run(t *testing.T) {
	t.Helper()
	in := input(t, c.mode, c.total, c.subsets)
	got := spread.Allocate(in)
	if diff := cmp.Diff(c.want, got.Replicas); diff != "" {
		t.Errorf("%s (-want +got):\n%s", c.why, diff)
	}
	if notes := codes(got.Notes); notes != c.notes {
		t.Errorf("%s: notes %q, want %q", c.why, notes, c.notes)
	}
}

func TestShares(t *testing.T) {
	for _, c := range []allocated{
		{"the largest gets the odd one", spread.Fixed, 5, "t1 has1,t2 has4,t3 has2,t4 has2", []int32{1, 2, 1, 1}, ""},
		{
			why:     "the sum of shares, where nothing else is said",
			mode:    spread.Fixed,
			total:   -1,
			subsets: "t1 =1,t2 =2,t3 =3,t4 =4",
			want:    []int32{1, 2, 3, 4},
		},
		{"percentages are rounded", spread.Fixed, 4, "a =25%,b =25%,c", []int32{1, 1, 2}, ""},

		{
			why:     "rounding alone never adds a replica: the first name gets the odd one",
			mode:    spread.Fixed,
			total:   5,
			subsets: "b =50%,a =50%",
			want:    []int32{2, 3},
		},
		{"the largest remainders win", spread.Fixed, 4, "a =10%,b =40%,c =50%", []int32{0, 2, 2}, ""},

		{
			why:     "too many are wanted of shares: the rest is divided",
			mode:    spread.Fixed,
			total:   14,
			subsets: "a =6,b =6",
			want:    []int32{7, 7},
			notes:   "ReplicasMismatch",
		},
		{"shares are too many: the first get theirs", spread.Fixed, 14, "a =10,b =11", []int32{10, 4}, "ReplicasMismatch"},
		{"percentages that do not add up", spread.Fixed, 100, "a =50%,b =30%", []int32{60, 40}, "ReplicasMismatch"},
		{"percentages above the whole", spread.Fixed, 10, "a =60%,b =60%", []int32{6, 4}, "ReplicasMismatch"},
		{"a share that is none counts as absent", spread.Fixed, 6, "a =half,b =2,c", []int32{2, 2, 2}, "InvalidAmount"},
		{"a negative share counts as absent", spread.Fixed, 6, "a =-3,b =2,c", []int32{2, 2, 2}, "InvalidAmount"},
		{"percentages of the unknown", spread.Fixed, -1, "a =50% has3,b =2", []int32{3, 2}, "InvalidAmount ReplicasMismatch"},
		{"huge shares", spread.Fixed, 7, "a =2147483647,b =2147483647", []int32{7, 0}, "ReplicasMismatch"},
	} {
		t.Run(fmt.Sprintf("%s, %d: %s", c.subsets, c.total, c.why), c.run)
	}
}

func TestBounds(t *testing.T) {
	const five = "a min2 max5,b min2 max5,c min2 max5,d min2 max5,e min2"
	for _, c := range []allocated{
		{"the first ones fill", spread.Fixed, 14, five, []int32{5, 3, 2, 2, 2}, ""},
		{"percentages are rounded", spread.Fixed, 5, "a max50%,b", []int32{3, 2}, ""},
		{"more than all maxima", spread.Fixed, 9, "a max2,b max3", []int32{2, 3}, "NoRoom"},
		{"a maximum that is none does not count as zero", spread.Fixed, 4, "a maxmany,b", []int32{4, 0}, "InvalidAmount"},
		{"crossed bounds: the maximum counts", spread.Fixed, 4, "a min3 max1,b", []int32{1, 3}, "BoundsCrossed"},
	} {
		t.Run(fmt.Sprintf("%s, %d: %s", c.subsets, c.total, c.why), c.run)
	}
}

func TestAdaptive(t *testing.T) {
	for _, c := range []allocated{
		{"2 of 5 wait", spread.Adaptive, 10, "a min3 max5 has5 ready3 down,b has5 ready5", []int32{3, 7}, ""},
		{"a minimum holds even here", spread.Adaptive, 3, "a min1 has1 ready0 down,b has3 ready3", []int32{1, 2}, ""},
		{
			why:     "ready pods stay where new ones do not fit, also above a lowered maximum",
			mode:    spread.Adaptive,
			total:   6,
			subsets: "a max2 has4 ready4 down,b has2 ready2",
			want:    []int32{4, 2},
		},
		{"shares do not count", spread.Adaptive, 3, "a =1,b", []int32{3, 0}, ""},
	} {
		t.Run(fmt.Sprintf("%s, %d: %s", c.subsets, c.total, c.why), c.run)
	}
}

func TestReserving(t *testing.T) {
	four := func(a, b, c, d string) string {
		return fmt.Sprintf("a min1 max2 %s,b min1 max2 %s,c min1 max2 %s,d min1 %s", a, b, c, d)
	}
	for _, c := range []allocated{
		{
			why:     "two fail",
			mode:    spread.Reserving,
			total:   8,
			subsets: four("has2", "has2 reserved2 down", "has2 reserved2 down", "has2"),
			want:    []int32{2, 2, 2, 6},
		},
		{
			why:     "new pods have yet to prove themselves",
			mode:    spread.Reserving,
			total:   4,
			subsets: "a has2 reserved2 down marked,b has2 reserved0 marked,c has4",
			want:    []int32{2, 4, 2},
		},
		{"a lowered maximum holds", spread.Reserving, 4, "a max1 has3 reserved3 down,b", []int32{1, 4}, ""},
		{"more reserved than wanted", spread.Reserving, 2, "a has1 reserved2147483647 down,b", []int32{1, 2}, ""},
	} {
		t.Run(fmt.Sprintf("%s, %d: %s", c.subsets, c.total, c.why), c.run)
	}
}

func TestPartition(t *testing.T) {
	partitions := map[string]int32{"a": 2, "b": -1}
	for _, c := range []struct {
		subset         string
		replicas, want int32
	}{{"a", 1, 1}, {"a", 4, 2}, {"b", 4, 0}, {"c", 4, 0}, {"a", -1, 0}} {
		if got := spread.Partition(partitions, c.subset, c.replicas); got != c.want {
			t.Errorf("%v: got %d", c, got)
		}
	}
}

func TestAmount(t *testing.T) {
	for text, want := range map[string]int32{
		"0":            0,
		"7":            7,
		"50%":          3,
		"0%":           0,
		"100%":         5,
		"49%":          2,
		"-1":           -1,
		"101%":         -1,
		"5.5%":         -1,
		"%":            -1,
		"":             -1,
		"x":            -1,
		"99999999999%": -1,
	} {
		got, err := spread.Amount(amount(text), 5)
		if want < 0 != (err != nil) || err == nil && got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	if _, err := spread.Amount(ptr.To(intstr.FromString(strings.Repeat("x", 9000))), 1); err == nil ||
		len(err.Error()) > 200 {
		t.Errorf("a long text: %d bytes", len(err.Error()))
	}
}
