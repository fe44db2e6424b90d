# A worker in Perl: reads messages and answers each with a line of JSON.
use strict;
use warnings;
use JSON::PP;

$| = 1;    # write each answer at once

sub handle {
    my ($message) = @_;
    return (error => 'can never succeed', dead => JSON::PP::true) if $message->{body} =~ /^dead/;
    return (error => 'not now', retry_after_seconds => 60) if $message->{body} =~ /^fail/;
    return ();
}

while (my $line = <STDIN>) {
    my $message = decode_json($line);
    my %outcome = eval { handle($message) };
    %outcome = (error => "$@") if $@;
    print encode_json({ id => $message->{id}, %outcome }), "\n";
}
