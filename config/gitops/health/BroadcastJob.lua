local function answer(status, message) return { status = status, message = message } end
local status, spec = obj.status or {}, obj.spec or {}
if status.phase == "failed" then return answer("Degraded", "the job has failed") end
for _, c in ipairs(status.conditions or {}) do
  if c.status == "True" and (c.type == "Stalled" or c.type == "Failed") then
    return answer("Degraded", c.type .. ": " .. (c.message or c.reason or ""))
  end
end
if status.phase == "completed" then return answer("Healthy", (status.succeeded or 0) .. " nodes have run it") end
if spec.paused then return answer("Suspended", "the job is paused") end
if (spec.completionPolicy or {}).type == "Never" and status.desired and (status.active or 0) == 0 then
  return answer("Healthy", (status.succeeded or 0) .. " nodes have run it, and new nodes will")
end
return answer("Progressing", (status.succeeded or 0) .. " of " .. (status.desired or 0) .. " nodes have run it")
