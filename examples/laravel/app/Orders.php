<?php

namespace App;

use App\Jobs\SendMail;
use Illuminate\Support\Facades\DB;

class Orders
{
    public static function place(?string $customer): int
    {
        return DB::transaction(function () use ($customer) {
            $order = DB::table('orders')->insertGetId(['customer' => $customer]);
            SendMail::dispatch($order);
            return $order;
        });
    }
}
