package scope

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// always is an expression that holds for all pods.
	always = "true"

	// maxClauses of an expression. API servers compile so many in a tenth of a second, for which the first pod after each
	// change waits, and the time grows with the square of the number.
	maxClauses = 128
	// maxLetters of an expression, which API servers compile in a tenth of a second. They accept 100,000.
	maxLetters = 48 << 10
)

// The frame of clauses. Labels may be missing as a whole. Their name is short because it comes often.
const head, tail = "[has(object.metadata.labels) ? object.metadata.labels : {}].exists(l, ", ")"

// alternatives select the pods for which one of them holds.
type alternatives struct {
	// values are the clauses that accept values of one label, by the label.
	values map[string][]string
	// clauses are over the labels l of the pod, and conditions over the pod.
	clauses, conditions []string
	// all selects every pod.
	all bool
}

// empty reports whether no pod is selected.
func (a *alternatives) empty() bool {
	return !a.all && len(a.values)+len(a.clauses)+len(a.conditions) == 0
}

// add adds a clause: requirements on the labels of a pod, and on the name of its namespace.
func (a *alternatives) add(pod, name []metav1.LabelSelectorRequirement) {
	if len(name) == 0 && len(pod) == 1 && pod[0].Operator == metav1.LabelSelectorOpIn {
		if a.values == nil {
			a.values = map[string][]string{}
		}
		a.values[pod[0].Key] = append(a.values[pod[0].Key], pod[0].Values...)
		return
	}
	var operands []string
	for _, r := range name {
		operands = append(operands, requires(r, "", "request.namespace"))
	}
	for _, r := range pod {
		operands = append(operands, requiresLabel(r))
	}
	if len(operands) == 0 {
		a.all = true
		return
	}
	a.clauses = append(a.clauses, "("+strings.Join(operands, " && ")+")")
}

// expression returns the alternatives as one expression. Widened reports that it holds for more pods, because they are
// more than an API server compiles in time.
func (a *alternatives) expression() (expression string, widened bool) {
	if a.all {
		return always, false
	}
	clauses := sorted(slices.Clone(a.clauses))
	for _, key := range slices.Sorted(maps.Keys(a.values)) {
		clauses = append(clauses, "("+requiresLabel(metav1.LabelSelectorRequirement{
			Key: key, Operator: metav1.LabelSelectorOpIn, Values: sorted(slices.Clone(a.values[key])),
		})+")")
	}
	if len(clauses) > maxClauses {
		return always, true
	}
	var operands []string
	if len(clauses) > 0 {
		operands = append(operands, head+strings.Join(clauses, " || ")+tail)
	}
	expression = strings.Join(append(operands, a.conditions...), " || ")
	if len(expression) > maxLetters {
		return always, true
	}
	return expression, false
}

func requiresLabel(r metav1.LabelSelectorRequirement) string {
	return requires(r, quote(r.Key)+" in l", "l["+quote(r.Key)+"]")
}

// requires returns an expression for a requirement on a value. Exists reports whether there is a value; it is empty for
// a value that always exists.
func requires(r metav1.LabelSelectorRequirement, exists, value string) string {
	in := value + " in " + list(r.Values)
	if exists != "" {
		in = exists + " && " + in
	} else {
		exists = always
	}
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		return in
	case metav1.LabelSelectorOpNotIn:
		return "!(" + in + ")"
	case metav1.LabelSelectorOpExists:
		return exists
	case metav1.LabelSelectorOpDoesNotExist:
	}
	return "!(" + exists + ")"
}

func list(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(v)
	}
	return "[" + strings.Join(quoted, ",") + "]"
}

// quote returns a literal. Labels have nothing to escape, or could not be read; the names of users may.
func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`).Replace(s) + "'"
}
