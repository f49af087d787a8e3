// Package templated is what the admission webhooks of kinds with a pod template share: reading a request in either version, filling in
// defaults, and rejecting what cannot work. A kind adds its types and its rules.
//
//	kind := templated.Kind[*v1beta1.CloneSet]{
//		Name:     "CloneSet",
//		Hub:      func() *v1beta1.CloneSet { return &v1beta1.CloneSet{} },
//		Old:      func() templated.Spoke[*v1beta1.CloneSet] { return &v1alpha1.CloneSet{} },
//		Validate: validation.CloneSet, ValidateUpdate: validation.CloneSetUpdate,
//	}
//	w, err := templated.New(client, kind, templated.Options{})
//	...
//	answer := w.Mutate(ctx, req)       // defaults
//	answer = w.Validate(ctx, req)      // rules
//
// Laws:
//   - The patch of defaults only adds, and replaces empty values. What the user wrote, fields that this program does not know included, stays
//     as it was written.
//   - An update gives a template that was defaulted in its time no default that the API server has learned since: pods would be recreated
//     without a change.
//   - A template is validated by the API server where it is new or has changed, with one call for both webhooks where they run in one
//     process. Package podtemplate does that.
//   - A field of a template that the API server does not know is kept, with a warning where the template is new or has changed.
//   - An update is not rejected for a fault that the stored object has already: no user could repair such an object, and controllers could
//     not tidy it up. The fault is a warning then.
//   - Faults have paths in the version of the request.
//   - No input makes a handler panic.
//
// When not to use it: for a kind without a pod template. Package review is enough there.
package templated
