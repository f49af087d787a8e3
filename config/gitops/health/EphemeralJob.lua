local function answer(status, message) return { status = status, message = message } end
local status, spec = obj.status or {}, obj.spec or {}
if status.phase == "Failed" or status.phase == "Error" then
  return answer("Degraded", (status.failed or 0) .. " pods have failed")
end
if status.phase == "Succeeded" then return answer("Healthy", (status.succeeded or 0) .. " pods have run it") end
if status.phase == "Paused" or spec.paused then return answer("Suspended", "the job is paused") end
return answer("Progressing", (status.succeeded or 0) .. " of " .. (status.match or 0) .. " pods have run it")
