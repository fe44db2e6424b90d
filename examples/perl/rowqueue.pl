#!/usr/bin/perl
# A producer and a consumer in Perl, on PostgreSQL, MySQL, MariaDB and Firebird. Copy it and replace `handle` and `send_all`.
#
#   apt-get install libdbd-pg-perl libdbd-mariadb-perl libdbd-firebird-perl
#   DATABASE_URL=postgresql://user:password@host/shop perl rowqueue.pl send TYPE BODY…
#   DATABASE_URL=mysql://user:password@host/shop      perl rowqueue.pl consume TYPE    (or mariadb://, firebird://)
use v5.32;
use warnings;
use utf8;
use DBI;
use Digest::MD5 qw(md5_hex);
use Encode qw(decode_utf8 encode_utf8);    # decode('UTF-8') would replace characters such as U+FFFE
use IO::Handle;
use IO::Select;
use JSON::PP;

use constant SIZE => $ENV{BATCH_SIZE} // 20;
use constant LEASE_SECONDS => $ENV{LEASE_SECONDS} // 60;

# The numbered errors of the contract: $@->{number}, $@->{name}, $@->{message}.
package Rowqueue::Error {
    use overload '""' => sub { "$_[0]{number} $_[0]{message}" }
}

# A handler dies with it to dead-letter its message.
package Rowqueue::Dead {
    use overload '""' => sub { $_[0]{message} }
}

package main;

my $json = JSON::PP->new->allow_nonref;    # texts for the database: characters, not bytes
my ($postgresql, $firebird);

sub connect_to {
    my ($url) = @_;
    my ($scheme, $login, $host, $port, $name) = $url =~ m{^(\w+)://(?:([^@/]*)@)?([^:/]+)(?::(\d+))?/([^?]+)}
        or die "DATABASE_URL must be scheme://user:password\@host:port/database\n";
    ($name, my ($user, $password)) = map { s/%(..)/chr hex $1/ger } $name, split /:/, $login // '', 2;
    $postgresql = $scheme =~ /^postgres/;
    $firebird = $scheme eq 'firebird';
    my $dsn = $postgresql ? 'dbi:Pg:dbname=' : $firebird ? 'dbi:Firebird:ib_charset=UTF8;dbname=' : 'dbi:MariaDB:database=';
    $dsn .= "$name;host=$host";
    $dsn .= ";port=$port" if $port;
    $dsn .= ";ib_role=$1" if $url =~ /[?&]role=(\w+)/;    # on Firebird a session has only the role that it names
    my %options = (RaiseError => 1, PrintError => 0, AutoCommit => 1, FetchHashKeyName => 'NAME_lc');
    %options = (%options, ib_enable_utf8 => 1, LongReadLen => 16 << 20) if $firebird;    # a body has up to 16 MiB
    my $dbh = DBI->connect($dsn, $user, $password, \%options);
    if ($firebird) {
        my @manner = (-isolation_level => ['read_committed', 'record_version'], -lock_resolution => 'no_wait');
        $dbh->func(@manner, 'ib_set_tx_param');
    }
    $dbh->do('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED') unless $postgresql || $firebird;
    return $dbh;
}

# The rows of a procedure. All arguments are given; undef is the default.
sub call {
    my ($dbh, $procedure, @values) = @_;
    my $places = join ', ', ('?') x @values;
    my $statement = $postgresql ? "SELECT * FROM mq.$procedure($places)" : "CALL mq_$procedure($places)";
    if ($firebird) {
        # The driver sends a long text only with EXECUTE PROCEDURE, which returns one row.
        my $has_text = $procedure eq 'send' || $procedure eq 'finish_batch' && defined $values[1];
        $statement = $has_text ? "EXECUTE PROCEDURE mq_$procedure($places)" : "SELECT * FROM mq_$procedure($places)";
        defined and utf8::upgrade($_) for @values;    # other characters below 256 would be sent as Latin-1
    }
    my @rows;
    my $done = eval {
        my $sth = $dbh->prepare($statement);
        $sth->execute(@values);
        push @rows, @{ $sth->fetchall_arrayref({}) };
        unless ($postgresql || $firebird) { 1 while $sth->more_results }    # an error may come after the rows
        1;
    };
    return @rows if $done;
    my $error = $@;
    my $number = $postgresql ? $dbh->state : $dbh->err;
    $number = $1 if $firebird && $dbh->errstr =~ /^-MQ_(\d+)$/m;
    die $error unless $number =~ /^500\d\d$/ && $dbh->errstr =~ /(([a-z_]+): [^\n]*)/;
    die bless { number => $number, name => $2, message => $1 }, 'Rowqueue::Error';
}

# Runs the code again after a deadlock, a lock timeout or a serialization failure, which have rolled everything back.
sub repeated {
    my ($dbh, $code) = @_;
    for my $try (1 .. 10) {
        my @result;
        return @result if eval { @result = $code->(); 1 };
        my $error = $@;
        my $number = ($postgresql ? $dbh->state : $dbh->err) // '';
        eval { $dbh->rollback } unless $dbh->{AutoCommit};
        my $again = $number =~ /^(?:40001|40P01|1213|1205|1020|1180|3101)$/;
        $again = $error =~ /deadlock|lock conflict/ if $firebird;
        die $error if ref $error || $try == 10 || !$again;
        select undef, undef, undef, rand 0.05 * $try;
    }
}

# The order and the message about it, in one transaction: both are there or neither.
sub send_all {
    my ($dbh, $type, @bodies) = @_;
    repeated(
        $dbh,
        sub {
            $dbh->begin_work;
            for my $body (@bodies) {
                $dbh->do('INSERT INTO orders (body) VALUES (?)', undef, $body);
                call($dbh, 'send', $type, $body);
            }
            $dbh->commit;
        }
    );
}

# The next batch. On Firebird a list of outcomes takes two calls, in one transaction.
sub finish {
    my ($dbh, $type, $key, $outcomes, $size) = @_;
    return call($dbh, 'finish_batch', $key, $outcomes, $size) unless $firebird && defined $outcomes;
    $dbh->begin_work;
    call($dbh, 'finish_batch', $key, $outcomes, 0);
    my @batch = $size ? call($dbh, 'claim_batch', $type, $size, undef, LEASE_SECONDS) : ();
    $dbh->commit;
    return @batch;
}

sub handle {
    my ($message) = @_;
    my $body = $message->{body};
    die "$1\n" if $body =~ /^raise (.*)/s;
    die "not yet\n" if $body eq 'retry' && $message->{attempt} == 1;
    die bless { message => 'no such address' }, 'Rowqueue::Dead' if $body eq 'dead';
    sleep 4 if $body eq 'slow';
    open my $file, '>>', $ENV{HANDLED} or die "HANDLED: $!\n";
    $file->autoflush;
    print $file JSON::PP->new->utf8->encode([0 + $message->{id}, $body]), "\n";
}

# A child process that extends the lease of the batch whose key was written to it last, as long as this process lives.
sub start_keeper {
    my ($url) = @_;
    pipe my $reader, my $writer or die "pipe: $!\n";
    my $child = fork // die "fork: $!\n";
    if ($child) { $writer->autoflush; return $writer }
    close $writer;
    my ($dbh, $key, $select) = (connect_to($url), '', IO::Select->new($reader));
    $SIG{TERM} = $SIG{INT} = 'IGNORE';    # after connecting: Firebird's library sets its own handlers
    while (1) {
        if ($select->can_read(LEASE_SECONDS / 3)) {
            sysread $reader, my $line, 37 or exit;
            $key = $line =~ s/\s+//r;
        }
        elsif ($key) {
            eval { call($dbh, 'extend_lease', $key, undef) } or warn $@;
        }
    }
}

sub consume {
    my ($url, $type) = @_;
    my ($keeper, $stopping) = (start_keeper($url), 0);    # before connecting: a connection must not be shared
    my $dbh = connect_to($url);
    $SIG{TERM} = $SIG{INT} = sub { $stopping = 1 };
    $dbh->do('LISTEN mq_' . md5_hex(encode_utf8($type))) if $postgresql;
    my @batch;
    until ($stopping && !@batch) {
        unless (@batch) {
            @batch = repeated($dbh, sub { call($dbh, 'claim_batch', $type, SIZE, undef, LEASE_SECONDS) });
            wait_for($dbh, $type) unless @batch;
            next;
        }
        my ($key, @outcomes) = $batch[0]{batch_key};
        printf $keeper "%-36s\n", $key;
        for my $message (@batch) {
            next if eval { handle($message); 1 };
            my $dead = ref $@ eq 'Rowqueue::Dead' ? 1 : 0;
            chomp(my $text = "$@" =~ tr/\0//dr);    # the databases refuse NUL
            push @outcomes, $json->encode({ id => 0 + $message->{id}, error => $text, dead => $dead });
        }
        my $list = @outcomes ? join("\n", @outcomes) : undef;
        @batch = eval {
            repeated($dbh, sub { finish($dbh, $type, $key, $list, $stopping ? 0 : SIZE) });
        };
        if ($@) { ref $@ eq 'Rowqueue::Error' && $@->{number} == 50008 ? (warn "$@\n") : die $@ }
        printf $keeper "%-36s\n", '' unless @batch;
    }
}

# Returns when a message may be there, after two seconds at most.
sub wait_for {
    my ($dbh, $type) = @_;
    return select undef, undef, undef, 0.5 if $firebird;    # the server cannot wait; the driver's wait for events has no end
    my ($state) = call($dbh, 'wait_for_message', $type, $postgresql ? 0 : 2);    # 0: ask senders to notify
    return if !$postgresql || $state->{ready} || $dbh->pg_notifies;
    IO::Select->new($dbh->{pg_socket})->can_read(2);
    1 while $dbh->pg_notifies;
}

binmode STDERR, ':encoding(UTF-8)';
my ($command, $type, @bodies) = map { decode_utf8($_) } @ARGV;
my $url = $ENV{DATABASE_URL} or die "DATABASE_URL must hold the URL of the database\n";
my $done = eval {
    if (($command // '') eq 'send') { send_all(connect_to($url), $type, @bodies) }
    elsif (($command // '') eq 'consume') { consume($url, $type) }
    else { die "usage: rowqueue.pl send TYPE BODY… | consume TYPE\n" }
    1;
};
$done or print STDERR $@ =~ s/\n?\z/\n/r and exit 1;
