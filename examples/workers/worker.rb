# A worker in Ruby: reads messages and answers each with a line of JSON.
require 'json'

$stdin.set_encoding('UTF-8')
$stdout.sync = true # write each answer at once

def handle(message)
  return { error: 'can never succeed', dead: true } if message['body'].start_with?('dead')
  return { error: 'not now', retry_after_seconds: 60 } if message['body'].start_with?('fail')

  {}
end

$stdin.each_line do |line|
  message = JSON.parse(line)
  puts JSON.generate({ id: message['id'] }.merge(handle(message)))
end
