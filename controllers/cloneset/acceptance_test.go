package cloneset_test

// Which test has which promise of CloneSets. Tests named with * need an API server; the others run the reconciler over
// objects in memory, or its pure half.
//
//	scale-out is limited              TestScaleOutIsLimited, TestPlanScale
//	one by one, ready for a while     TestScaleOutOneByOne*
//	orphans and released pods         TestReleaseAndOrphans*
//	creations of two revisions        TestScaleOutOfTwoRevisions, TestPlanScale
//	ids of claims first               TestPlanClaims
//	claims go with their pods         TestPlanClaims, TestPodsToDelete*
//	scale-in and availability         TestPlanScale, TestScaleInChosenFirst
//	ranks by node and zone            scale: TestVictimsOnOneNode, TestVictimsOverZones
//	order of deletion                 scale: TestVictims, TestDeletionCost
//	a chosen pod is held              TestChosenPodIsHeld
//	a held pod is not counted         TestHeldPodIsNotCounted
//	preNormal                         TestPreNormal, TestPreNormalOfAnUpdatedPod
//	deadline of a pod on no node      TestDeadlineOfUnschedulablePod
//	paused from the beginning         TestPlanScale, TestPlanUpdates, TestProgress
//	no deadline                       TestProgress
//	partition of 99%                  TestPartition*, TestProgressThroughPartition
//	OnDelete                          TestPlanScale, TestPlanUpdates, TestOnDeleteThroughScaling
//	recreation marks first            TestPlanUpdates, TestRecreateMarksFirst
//	in place if possible              TestInPlaceIfPossible
//	grace period                      TestGracePeriod
//	inPlaceUpdate                     TestHooks*, TestRollbackWhileHeld
//	preparing counts as updated       TestPreparingUpdateCountsAsUpdated
//	reuse of claims                   TestClaimsAreReused, TestClaimReuseIsSwitchedOff, TestClaimsAreHandedOver*
//	changed claim templates           TestRecreateOnClaimChange
//	a revision without annotations    TestBareRevisionIsRaised
//	image pre-download                TestPreDownload*, TestNoPreDownload, TestPreDownloadLater
//	ports of the host                 TestHostPorts*; webhooks/cloneset: TestAdmission/HostPorts
//	event filter                      internal/workloads: TestChanges; TestIgnoreRewording;
//	                                  TestSkipQuiet*, TestRejectionsOfChangingText*
//	refusals                          webhooks/cloneset: TestAdmission/Refusals, TestAdmission/OnDelete
//	arithmetic                        scale: TestDifference*
//	defaults                          webhooks/cloneset: TestAdmission/Defaults
//	the deadline's clock              TestProgress, TestDeadlineStartsWithTheRollout
//	limit of updates                  scale: TestUpdateLimit; TestRolloutKeepsItsBudget
//
// Beside these: TestInvalidSets, TestTemplateLeavesItsSet, TestRejectedTemplates*, TestMalformedSet*, TestQuota* and
// TestQuotaOfRevisions* for input that no webhook validated, TestOverlappingSelectors*, TestFaults*,
// TestStopAtEachWrite, TestRestartWhileCreating*, TestRestartWhileUpdating*, TestTwoManagers*, TestFinishedPods.
