package scope

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
)

const (
	// Disrupts is the match condition of requests that can make an available pod unavailable.
	Disrupts = conditions + "disrupts"
	// Stamped is the match condition of pods that name their budget, or of those that do not.
	Stamped = conditions + "stamped"
	// User is the match condition of requests of exempt users, or of all other users.
	User = conditions + "user"
)

// Operations are which disruptions are reviewed.
type Operations struct {
	// Deletes are deletions and evictions, Updates updates in place and resizes.
	Deletes, Updates bool
	// Exempt are the users that no budget refuses.
	Exempt []string
}

// disruption is an entry of disruptions.
type disruption struct {
	name       string
	rules      []admissionregistrationv1.RuleWithOperations
	namespaces []string
	conditions []matchCondition
	// open requests are sent to the path that refuses nothing, and ignored ones are admitted while no replica answers.
	open, ignored bool
}

// Disruptions returns which requests about pods that exist API servers send, for the contributions of
// DisruptionSources: the entries of a ValidatingWebhookConfiguration, in the form of the entries that Plan returns.
//
// Of a namespace with a budget are sent: deletions of available pods, and updates that change the spec or what the spec
// refers to. They fail closed for pods that name their budget, which the step of budgets and their reconciler write. An
// Eviction carries neither the labels nor the status of its pod: evictions of the namespace are sent, and fail closed.
// Not sent are requests about pods that are terminating, not ready or exempt, and updates of a status.
//
// Requests of exempt users, and deletions of spread pods and evictions in a namespace with a WorkloadSpread, are sent
// to the path that refuses nothing, and are admitted while no replica answers.
func Disruptions(in Input, o Operations) Scope {
	guarded, spread := in.namespaces()
	all := budgetEntries(guarded, o)
	if !o.Deletes {
		guarded = nil
	}
	var s Scope
	for _, d := range append(all, departureEntries(guarded, spread)...) {
		if len(d.namespaces) == 0 || len(d.rules) == 0 {
			continue
		}
		e := frame(in, d.open)
		e.Name, e.ReinvocationPolicy, e.Rules, e.MatchConditions = d.name+nameEnd, nil, d.rules, d.conditions
		if d.ignored {
			e.FailurePolicy, e.TimeoutSeconds = ptr.To(ignore), ptr.To[int32](openSeconds)
		}
		s.append(e, nil, !within(e, d.namespaces))
	}
	return s
}

// budgetEntries are those of namespaces with budgets.
func budgetEntries(namespaces []string, o Operations) []disruption {
	var pods, evictions []admissionregistrationv1.RuleWithOperations
	var operations []admissionregistrationv1.OperationType
	if o.Updates {
		operations = append(operations, admissionregistrationv1.Update)
		pods = []admissionregistrationv1.RuleWithOperations{podRule("pods/resize", admissionregistrationv1.Update)}
	}
	if o.Deletes {
		operations = append(operations, admissionregistrationv1.Delete)
		evictions = evictionRules()
	}
	if len(operations) > 0 {
		pods = append([]admissionregistrationv1.RuleWithOperations{podRule("pods", operations...)}, pods...)
	}
	users, others := usersIn(o.Exempt)
	is := matchCondition{Name: Stamped, Expression: stamped}
	isNot := matchCondition{Name: Stamped, Expression: "!" + stamped}
	all := []disruption{
		{name: "vpod", rules: pods, conditions: append(others, available(), is)},
		{name: "vpod-unstamped", rules: pods, conditions: append(others, available(), isNot), ignored: true},
		{name: "vpodeviction", rules: evictions, conditions: others},
	}
	if len(users) > 0 {
		all = append(all,
			disruption{name: "vpod-exempt", rules: pods, conditions: append(users, available()), open: true},
			disruption{name: "vpodeviction-exempt", rules: evictions, conditions: users, open: true})
	}
	for i := range all {
		all[i].namespaces = namespaces
	}
	return all
}

// departureEntries are those of namespaces with WorkloadSpreads. They exclude requests that budgets concern, whose
// review records them after the decision: where a namespace is guarded, requests about pods that are not available are
// left.
func departureEntries(guarded, spread []string) []disruption {
	var alone, both []string
	for _, name := range spread {
		if _, found := slices.BinarySearch(guarded, name); found {
			both = append(both, name)
		} else {
			alone = append(alone, name)
		}
	}
	deletions := []admissionregistrationv1.RuleWithOperations{podRule("pods", admissionregistrationv1.Delete)}
	departed := []matchCondition{{Name: Disrupts, Expression: departs}}
	unready := append(slices.Clone(departed), not(disrupts))
	return []disruption{
		{name: "vpod-open", rules: deletions, namespaces: alone, conditions: departed, open: true},
		{name: "vpod-unready", rules: deletions, namespaces: both, conditions: unready, open: true},
		{name: "vpodeviction-open", rules: evictionRules(), namespaces: alone, open: true},
	}
}

func evictionRules() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{podRule("pods/eviction", admissionregistrationv1.Create)}
}

// usersIn returns the conditions of requests of users and of all others; none for no users.
func usersIn(names []string) (users, others []matchCondition) {
	if len(names) == 0 {
		return nil, nil
	}
	is := "request.userInfo.username in " + list(sorted(slices.Clone(names)))
	return []matchCondition{{Name: User, Expression: is}}, []matchCondition{{Name: User, Expression: "!(" + is + ")"}}
}

func available() matchCondition { return matchCondition{Name: Disrupts, Expression: disrupts} }

// stamped holds for pods that name a budget.
const stamped = `(has(oldObject.metadata.annotations) && ` +
	`['` + kruise.PodRelatedPubKey + `', '` + kruise.PodRelatedPubKeyOld + `'].exists(k, k in oldObject.metadata.annotations))`

// departs holds for deletions of active pods that a WorkloadSpread has spread.
const departs = `!has(oldObject.metadata.deletionTimestamp) && has(oldObject.metadata.annotations) && ` +
	`'` + kruise.MatchedWorkloadSpreadKey + `' in oldObject.metadata.annotations && ` +
	`!(has(oldObject.status.phase) && oldObject.status.phase in ['Succeeded', 'Failed'])`

// disrupts holds for requests about an available pod that a budget may concern. It is wider than package pub where pub
// reads more than the request.
const disrupts = `!has(oldObject.metadata.deletionTimestamp) && has(oldObject.status.phase) && oldObject.status.phase == 'Running' && ` +
	`has(oldObject.status.conditions) && oldObject.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True') && ` +
	`!(has(oldObject.metadata.labels) && oldObject.metadata.labels.exists(k, k.startsWith('` +
	kruise.PubUnavailablePodLabelPrefix + `'))) && ` +
	`!(has(oldObject.metadata.annotations) && '` + kruise.PodPubNoProtectionKey +
	`' in oldObject.metadata.annotations && ` +
	`oldObject.metadata.annotations['` + kruise.PodPubNoProtectionKey +
	`'] in ['1', 't', 'T', 'true', 'TRUE', 'True']) && ` +
	`(request.operation == 'DELETE' || object.spec != oldObject.spec || ` +
	`(has(object.metadata.labels) && object.metadata.labels.exists(k, k.startsWith('` +
	kruise.PubUnavailablePodLabelPrefix + `'))) || ` +
	`oldObject.spec.containers.exists(c, has(c.env) && c.env.exists(e, has(e.valueFrom) && has(e.valueFrom.fieldRef) && ` +
	`e.valueFrom.fieldRef.fieldPath.startsWith('metadata.'))))`
