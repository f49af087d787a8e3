// Package kinds serves the admission webhooks of kinds: one that fills in defaults, and one that rejects what cannot
// work. A kind is a Row, a value with its types, its rules and its paths; everything else is the same for all kinds.
//
//	row := kinds.Row[*v1beta1.CloneSet]{
//		Kind: v1beta1.GroupVersion.WithKind("CloneSet"),
//		Hub:  &v1beta1.CloneSet{}, Old: &v1alpha1.CloneSet{},
//		MutatePath: "/mutate-apps-kruise-io-cloneset", ValidatePath: "/validate-apps-kruise-io-cloneset",
//		Validate: validation.CloneSet, ValidateUpdate: validation.CloneSetUpdate,
//		Template: &kinds.Template{},
//	}
//	webhooks, err := kinds.New(client, row, kinds.Options{})
//	if err != nil {
//		return err
//	}
//	return webhooks.SetupWithManager(mgr)
//
// The rows of the kinds of OpenKruise are in the packages next to this one, each with its own constructor, so that a
// manager that serves one kind compiles the rules of that kind.
//
// Laws:
//   - An object of the older version is validated as one of the newer version. Paths of faults are those of the newer
//     version, unless the row translates the paths.
//   - A rejection names every fault with its path, and each of the first 100 faults is a cause.
//   - An update is not rejected for a fault that the stored object has already: no user could repair such an object,
//     and controllers could not remove its finalizers. The fault is a warning then.
//   - The patch of defaults only adds, and replaces empty values. What the user wrote, fields that this program does
//     not know included, stays as it was written.
//   - A pod template is defaulted and validated by the API server where the template is new or has changed, with one
//     call of each of the two webhooks.
//   - An update gives a template that was defaulted in its time no default that the API server has learned since: pods
//     would be recreated without a change.
//   - A field of a template that the API server does not know is kept, with a warning where the template is new or has
//     changed.
//   - A lookup that fails is 403, 404, 500 or 504, never a fault of the object.
//   - No input makes a handler panic.
//
// When not to use it: for a webhook of pods, or one that changes what users wrote.
//
// The client should read without a cache, as one of client.New does: from a cache, the few objects that are read by
// name start informers on all objects of their kinds.
package kinds
